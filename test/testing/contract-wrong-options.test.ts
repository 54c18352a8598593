import { contractCases, createTestIssuer } from '../../src/testing';
import { assemble, SAMPLE_DOCUMENT as openapi, sampleParts, tillgate } from './sample-app';

const issuer = createTestIssuer();
const app = assemble(sampleParts(tillgate(issuer)));

describe('options of contractCases() that are wrong', () => {
  it.each([
    ['neither app nor url', { openapi, issuer }, 'give either app or url'],
    ['both', { app, url: 'http://127.0.0.1', openapi, issuer }, 'give either app or url'],
    [
      'an address of another kind',
      { url: 'ftp://127.0.0.1', openapi, issuer },
      'option "url" must be an http: or https:',
    ],
    ['an app that is none', { app: 'app', openapi, issuer }, 'option "app" must be a function'],
    ['no document', { app, issuer }, 'option "openapi" must be a file or a parsed document'],
    ['no issuer', { app, openapi }, 'option "issuer" must be a test issuer'],
    ['a misspelt one', { app, openapi, issuer, request: {} }, 'did you mean "requests"'],
    ['requests that are a text', { app, openapi, issuer, requests: 'a' }, 'option "requests" must be an object'],
    ['a request of no operation', { app, openapi, issuer, requests: { getOrders: {} } }, 'did you mean "getOrder"'],
    ['a path to ignore', { app, openapi, issuer, ignore: '/a' }, 'option "ignore" must be an array of paths'],
    ['a document that is none', { app, openapi: {}, issuer }, 'expected an OpenAPI 3 document'],
  ])('are refused at once: %s', (_what, options, message) => {
    expect(() => contractCases(options as never)).toThrow(message);
  });
});
