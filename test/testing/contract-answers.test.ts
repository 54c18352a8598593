import type { LocatedOperation } from '../../src/openapi/document';
import type { Answer } from '../../src/testing/contract-cases/client';
import { documentedAnswers } from '../../src/testing/contract-cases/documented-answers';
import { isJson, mediaTypeOf } from '../../src/testing/contract-cases/media-type';
import { refusals } from '../../src/testing/contract-cases/refusal';
import { coverage } from '../../src/testing/contract-cases/report';

const operation = { method: 'GET', path: '/orders' } as LocatedOperation;

function answer(text: string, type: string, status = 200): Answer {
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

/** What is wrong with an answer, where the document names one content type. */
function deviations(documented: string, given: Answer) {
  const content = { [documented]: { schema: { type: 'object' } } };
  const document = { openapi: '3.1.0', paths: { '/orders': { get: { responses: { '200': { content } } } } } };
  return documentedAnswers(document, '')(operation).compare(given);
}

const NO_JSON = [{ what: 'body', got: 'no JSON', expected: 'JSON' }];

describe('a body that is said to be JSON', () => {
  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON', 'application/*', '*/*'])(
    'has to be JSON, also where %s is documented',
    (documented) => {
      expect(deviations(documented, answer('{oops', 'application/json'))).toEqual(NO_JSON);
      expect(deviations(documented, answer('', 'application/json; charset=utf-8'))).toEqual(NO_JSON);
      expect(deviations(documented, answer('[]', 'application/json'))).toEqual([
        { what: 'body of a 200', got: 'the body must be object', expected: 'its schema' },
      ]);
      expect(deviations(documented, answer('{}', 'Application/JSON ; charset=utf-8'))).toEqual([]);
    },
  );

  it('is nothing else where the type allows other things', () => {
    expect(deviations('*/*', answer('hello', 'text/plain'))).toEqual([]);
  });
});

it('a problem is one whatever case and parameters its media type has', () => {
  const compare = refusals({ problems: true, exposeReasons: true });
  const text = JSON.stringify({ status: 401, code: 'expired' });
  const given = answer(text, 'Application/Problem+JSON ; charset=utf-8', 401);
  const challenged = { ...given, headers: { ...given.headers, 'www-authenticate': 'Bearer error="invalid_token"' } };
  expect(compare(challenged, [{ status: 401, error: 'invalid_token', codes: ['expired'] }])).toEqual([]);
});

it('an operation that answered good tokens with a redirect alone is without success', () => {
  const answersOf = documentedAnswers({ openapi: '3.1.0', paths: {} }, '');
  const seen = coverage([operation], answersOf, []);
  seen.passed(operation, answer('', 'text/plain', 302));
  expect(seen.report().withoutSuccess).toEqual(['GET /orders answered 302']);
  seen.passed(operation, answer('', 'text/plain', 204));
  expect(seen.report().withoutSuccess).toEqual([]);
});
