import type { LocatedOperation } from '../../src/openapi/document';
import { documentedResponses } from '../../src/testing/contract-cases/responses';
import type { ApiResponse } from '../../src/testing/contract-cases/responses';
import { isJson, mediaTypeOf } from '../../src/testing/contract-cases/responses';
import { refusalRules } from '../../src/testing/contract-cases/responses';
import { contractReport } from '../../src/testing/contract-cases/contract-cases';

const operation = { method: 'GET', path: '/orders' } as LocatedOperation;

function response(text: string, type: string, status = 200): ApiResponse {
  const parse = (): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  };
  const body = isJson(mediaTypeOf(type)) ? parse() : undefined;
  return { status, headers: { 'content-type': type }, text, body, localPort: undefined };
}

/** Compares a response with a document that names one content type. */
function mismatches(documented: string, given: ApiResponse) {
  const content = { [documented]: { schema: { type: 'object' } } };
  const document = { openapi: '3.1.0', paths: { '/orders': { get: { responses: { '200': { content } } } } } };
  return documentedResponses(document, '')(operation).compare(given);
}

const INVALID_JSON = [{ what: 'body', got: 'invalid JSON', expected: 'JSON' }];

describe('a body whose content type is JSON', () => {
  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON', 'application/*', '*/*'])(
    'must be JSON, also where %s is documented',
    (documented) => {
      expect(mismatches(documented, response('{oops', 'application/json'))).toEqual(INVALID_JSON);
      expect(mismatches(documented, response('', 'application/json; charset=utf-8'))).toEqual(INVALID_JSON);
      expect(mismatches(documented, response('[]', 'application/json'))).toEqual([
        { what: 'body of a 200', got: 'the body must be object', expected: 'its schema' },
      ]);
      expect(mismatches(documented, response('{}', 'Application/JSON ; charset=utf-8'))).toEqual([]);
    },
  );

  it('may be anything else where another content type is documented', () => {
    expect(mismatches('*/*', response('hello', 'text/plain'))).toEqual([]);
  });
});

it('the media type of a problem may have parameters and any case', () => {
  const compare = refusalRules({ problems: true, exposeReasons: true });
  const text = JSON.stringify({ status: 401, code: 'expired' });
  const given = response(text, 'Application/Problem+JSON ; charset=utf-8', 401);
  const challenged = { ...given, headers: { ...given.headers, 'www-authenticate': 'Bearer error="invalid_token"' } };
  expect(compare(challenged, [{ status: 401, error: 'invalid_token', codes: ['expired'] }])).toEqual([]);
});

it('an operation that responded to good tokens only with redirects is without success', () => {
  const documented = documentedResponses({ openapi: '3.1.0', paths: {} }, '')(operation);
  const report = (...accepted: number[]) =>
    contractReport([{ name: 'GET /orders', documented, seen: new Set(['302']), accepted: new Set(accepted) }], []);
  expect(report(302).withoutSuccess).toEqual(['GET /orders responded 302']);
  expect(report(302, 204).withoutSuccess).toEqual([]);
});
