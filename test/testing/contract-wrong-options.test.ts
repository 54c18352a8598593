import { contractCases, createTestIssuer } from '../../src/testing';
import { assemble, SAMPLE_DOCUMENT as openapi, sampleParts, tillgate } from './sample-app';

const issuer = createTestIssuer();
const app = assemble(sampleParts(tillgate(issuer)));

describe('contractCases() with wrong options', () => {
  it.each([
    ['neither app nor url', { openapi, issuer }, 'give either app or url'],
    ['both', { app, url: 'http://127.0.0.1', openapi, issuer }, 'give either app or url'],
    ['a URL of another scheme', { url: 'ftp://127.0.0.1', openapi, issuer }, 'option "url" must be an http: or https:'],
    ['an app that is not a function', { app: 'app', openapi, issuer }, 'option "app" must be a function'],
    ['no document', { app, issuer }, 'option "openapi" must be a file or a parsed document'],
    ['no issuer', { app, openapi }, 'option "issuer" must be a test issuer'],
    ['a misspelt option', { app, openapi, issuer, request: {} }, 'did you mean "requests"'],
    ['requests as a string', { app, openapi, issuer, requests: 'a' }, 'option "requests" must be an object'],
    [
      'a request for an unknown operation',
      { app, openapi, issuer, requests: { getOrders: {} } },
      'did you mean "getOrder"',
    ],
    ['a string to ignore', { app, openapi, issuer, ignore: '/a' }, 'option "ignore" must be an array of paths'],
    ['an empty document', { app, openapi: {}, issuer }, 'expected an OpenAPI 3 document'],
  ])('throws immediately for %s', (_what, options, message) => {
    expect(() => contractCases(options as never)).toThrow(message);
  });
});
