import express from 'express';
import type { LocatedOperation } from '../../src/testing/openapi/document';
import { documentedResponses, isJson, mediaTypeOf, refusalRules } from '../../src/testing/contract/responses';
import type { ApiResponse } from '../../src/testing/contract/responses';
import { bearerChallenge } from '../../src/testing/matchers';
import { schemaValidators } from '../../src/testing/contract/schemas';
import { prepareRequest } from '../../src/testing/contract/samples';
import type { SampleRequest } from '../../src/testing/contract/samples';
import { insufficientSets, sufficientSets } from '../../src/testing/contract/credentials';
import { noFindings } from '../../src/testing/contract/findings';
import type { Operation } from '../../src/testing/contract/operation';
import { contractReport } from '../../src/testing/contract/report';
import { appTarget } from '../../src/testing/contract/target';

const document = {
  openapi: '3.1.0',
  components: {
    schemas: {
      Id: { type: 'string', pattern: '^[a-z]{3}_[0-9]{4}$', example: 'itm_0001' },
      Alias: { $ref: '#/components/schemas/Id' },
      Tree: { type: 'object', required: ['child'], properties: { child: { $ref: '#/components/schemas/Tree' } } },
      Circle: { $ref: '#/components/schemas/Circle' },
    },
  },
};

/** The generated value of a schema, as a member of a body. */
function sampleOf(document: object, schema: object): unknown {
  const body = { type: 'object', required: ['value'], properties: { value: schema } };
  const requestBody = { content: { 'application/json': { schema: body } } };
  const at = { method: 'POST', path: '/', parameters: [], operation: { requestBody } } as unknown as LocatedOperation;
  return JSON.parse(prepareRequest(document, at, {}).body ?? '').value;
}

describe('generated values', () => {
  const [A, B] = [{ a: { const: 1 } }, { b: { const: 2 } }];
  const needing = (name: string, properties: object) => ({ required: [name], properties });
  it.each([
    ['an example', { type: 'string', example: 'a', default: 'b' }, 'a'],
    ['the first of the examples', { examples: ['x', 'y'] }, 'x'],
    ['a default', { type: 'integer', default: 20 }, 20],
    ['a constant', { const: 'ok' }, 'ok'],
    ['the first choice', { enum: ['open', 'closed'] }, 'open'],
    ['the target of a reference', { $ref: '#/components/schemas/Alias' }, 'itm_0001'],
    ['a format', { type: 'string', format: 'date-time' }, '2026-01-01T12:00:00Z'],
    ['a string of a length', { type: 'string', minLength: 8, maxLength: 9 }, 'sampleaa'],
    ['a short string', { type: 'string', maxLength: 2 }, 'sa'],
    ['a string of a pattern', { type: 'string', pattern: '^[A-Z]{3}$' }, 'AAA'],
    ['a string made from a pattern', { type: 'string', pattern: '^x{3}y{2}$' }, 'xxxyy'],
    ['a time of a pattern', { type: 'string', pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' }, '12:00'],
    ['the least integer', { type: 'integer', minimum: 5 }, 5],
    ['an integer above a limit', { type: 'integer', exclusiveMinimum: 5 }, 6],
    ['a multiple', { type: 'integer', minimum: 7, multipleOf: 5 }, 10],
    ['an integer below zero', { type: 'integer', maximum: -3 }, -3],
    ['a number between', { type: 'number', minimum: 0, maximum: 1 }, 0.5],
    ['the first type that is not null', { type: ['null', 'boolean'] }, true],
    ['null', { type: 'null' }, null],
    ['as many items as required', { type: 'array', minItems: 2, items: { const: 1 } }, [1, 1]],
    ['no items', { type: 'array', items: { const: 1 } }, []],
    ['only required members', { type: 'object', required: ['a'], properties: { ...A, ...B } }, { a: 1 }],
    ['enough members', { minProperties: 1, type: 'object', properties: A }, { a: 1 }],
    ['all parts of allOf', { allOf: [needing('a', A), needing('b', B)] }, { a: 1, b: 2 }],
    ['the first alternative', { oneOf: [{ const: 'left' }, { const: 'right' }] }, 'left'],
  ])('makes %s', (_what, schema, expected) => {
    expect(sampleOf(document, schema)).toEqual(expected);
  });

  it.each([
    ['an unknown pattern', { type: 'string', pattern: '^x(?=y)x$' }, 'no known string matches the pattern'],
    ['a schema that requires itself', { $ref: '#/components/schemas/Tree' }, 'a schema that requires itself'],
    ['a circle', { $ref: '#/components/schemas/Circle' }, 'leads in a circle'],
    ['another file', { $ref: 'other.yaml#/a' }, 'bundle the document first'],
  ])('throws for %s', (_what, schema, message) => {
    expect(() => sampleOf(document, schema)).toThrow(message);
  });

  it.each([
    { type: 'string', pattern: '^\\+?[1-9]\\d{1,14}$' },
    { type: 'string', pattern: '^[A-Za-z0-9_-]+$', minLength: 20, maxLength: 24 },
    { type: 'string', pattern: '^(?!x)[a-z]+$' },
    { type: 'string', pattern: '^\\p{L}+$' },
    ...['date', 'date-time', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'].map((format) => {
      return { type: 'string', format };
    }),
    { type: 'integer', multipleOf: 5, minimum: 1 },
    { type: 'integer', minimum: 0.5 },
    { type: 'number', exclusiveMinimum: 0, maximum: 0.5 },
    { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
    { type: 'object', minProperties: 1, properties: { a: { type: 'string' } } },
    { allOf: [{ type: 'string', minLength: 10 }, { maxLength: 12 }] },
    { type: 'array', minItems: 2, items: { type: 'integer', minimum: 3 } },
  ])('makes a value that is valid: %j', (schema) => {
    const { problemOf } = schemaValidators({ components: { schemas: { schema } } });
    expect(problemOf(['components', 'schemas', 'schema'], sampleOf(document, schema))).toBeUndefined();
  });
});

describe('prepareRequest()', () => {
  const at = {
    method: 'POST',
    path: '/lists/{list}/items/{id}',
    parameters: [
      { name: 'list', in: 'path', required: true, schema: { type: 'integer', minimum: 7 } },
      { name: 'id', in: 'path', required: true, schema: { $ref: '#/components/schemas/Id' } },
      { name: 'tag', in: 'query', required: true, schema: { type: 'array', minItems: 2, items: { const: 'a&b' } } },
      { name: 'limit', in: 'query', schema: { type: 'integer' } },
      { name: 'X-Kind', in: 'header', required: true, schema: { enum: ['retail'] } },
    ],
    operation: {
      requestBody: { content: { 'application/merge-patch+json': { examples: { one: { value: { a: 1 } } } } } },
    },
  } as unknown as LocatedOperation;
  const prepare = (given: SampleRequest = {}) => prepareRequest(document, at, given);

  it('takes values of the document', () => {
    expect(prepare()).toEqual({
      method: 'POST',
      target: '/lists/7/items/itm_0001?tag=a%26b&tag=a%26b',
      headers: { 'X-Kind': 'retail', 'content-type': 'application/merge-patch+json' },
      body: '{"a":1}',
    });
  });

  it('prefers given values', () => {
    const given = { path: { id: 'a/b' }, query: { tag: 'x', limit: 3 }, headers: { 'X-Kind': 'dining' }, body: 'raw' };
    expect(prepare(given)).toEqual({
      method: 'POST',
      target: '/lists/7/items/a%2Fb?tag=x&limit=3',
      headers: { 'X-Kind': 'dining', 'content-type': 'application/merge-patch+json' },
      body: 'raw',
    });
  });

  it('writes a form where the document has one', () => {
    const form = { 'application/x-www-form-urlencoded': { example: { a: 'x y', b: 1 } } };
    const withForm = { ...at, operation: { requestBody: { content: form } } } as never;
    const { headers, body } = prepareRequest(document, withForm, {});
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(body).toBe('a=x+y&b=1');
  });

  it('names the value that it cannot generate', () => {
    const parameters = [{ name: 'id', in: 'path', required: true, schema: { type: 'string', pattern: '^x(?=y)x$' } }];
    const message =
      'cannot generate a value for id (no known string matches the pattern ^x(?=y)x$); give one in "requests"';
    expect(() => prepareRequest(document, { ...at, parameters }, {})).toThrow(message);
  });
});

describe('sets of scopes', () => {
  it('are each alternative alone when they are sufficient', () => {
    expect(sufficientSets([['a', 'b'], ['c']]).map(({ scopes }) => scopes)).toEqual([['a', 'b'], ['c']]);
  });

  it('leave out each scope in turn, and one of each alternative, when they are insufficient', () => {
    const sets = insufficientSets([['aa', 'bb'], ['cc']], ['aa', 'bb', 'cc', 'dd']);
    expect(sets.map(({ scopes }) => scopes.join(' '))).toEqual([
      '',
      'bb',
      'aa',
      'bb dd',
      'aa dd',
      'aax aa:x aa.x aa: xaa a AA Aa aas bbx bb:x bb.x bb: xbb b BB Bb bbs ccx cc:x cc.x cc: xcc c CC Cc ccs',
    ]);
  });

  it('are never insufficient when no scope is required', () => {
    expect(insufficientSets([[]], ['aa'])).toEqual([]);
  });
});

describe('schemaValidators()', () => {
  const schema = { type: 'number', minimum: 0, exclusiveMinimum: true, nullable: true };
  const old = { openapi: '3.0.3', components: { schemas: { Price: schema } } };
  const { problemOf } = schemaValidators(old);

  it.each([
    [1, undefined],
    [null, undefined],
    [0, 'the body must be > 0'],
    ['1', 'the body must be number'],
  ])('reads schemas of OpenAPI 3.0: %j', (value, wrong) => {
    expect(problemOf(['components', 'schemas', 'Price'], value)).toBe(wrong);
  });
});

describe('required members', () => {
  const password = { type: 'string', writeOnly: true };
  const id = { type: 'string', readOnly: true };
  const User = { type: 'object', required: ['id', 'name', 'password'], properties: { id, name: {}, password } };
  const Needs = { required: ['name', 'password'] };
  const shapes = {
    plain: User,
    'a reference': { $ref: '#/components/schemas/User' },
    'a reference to the member': {
      ...User,
      properties: { id, name: {}, password: { $ref: '#/components/schemas/Password' } },
    },
    'two branches': { allOf: [{ properties: { id, name: {}, password } }, { required: ['id', 'name', 'password'] }] },
    'a branch by reference': {
      allOf: [{ properties: { id, name: {}, password } }, { $ref: '#/components/schemas/Needs' }],
    },
    'a property of another': { properties: { user: User } },
  };
  const cases = Object.entries(shapes).flatMap(([name, schema]) =>
    ['3.0.3', '3.1.0'].map((openapi) => [name, openapi, schema] as const),
  );

  it.each(cases)('of %s in OpenAPI %s are those of a request or of a response', (_name, openapi, schema) => {
    const document = { openapi, components: { schemas: { User, Needs, Password: password, schema } } };
    const { problemOf, isValid } = schemaValidators(document);
    const wrap = (value: object): object =>
      'properties' in schema && 'user' in schema.properties ? { user: value } : value;
    const wrong = (value: object) => problemOf(['components', 'schemas', 'schema'], wrap(value)) !== undefined;
    expect(wrong({ id: '1', name: 'a' })).toBe(false);
    expect(wrong({ id: '1' })).toBe(true);
    expect(isValid(schema, wrap({ name: 'a', password: 'b' }))).toBe(true);
    expect(isValid(schema, wrap({ name: 'a' }))).toBe(false);
  });
});

describe('bearerChallenge()', () => {
  it.each([
    ['Bearer realm="a \\"b\\", c", error=invalid_token', { realm: 'a "b", c', error: 'invalid_token' }],
    ['DPoP algs="ES256", bearer scope="a b"', { scope: 'a b' }],
    ['Bearer', {}],
    ['Basic realm="x"', undefined],
  ])('reads %s', (header, expected) => {
    expect(bearerChallenge(header)).toEqual(expected);
  });
});

describe('responses', () => {
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
    const { compare } = refusalRules({ problems: true, hides: false, hasGate: false });
    const text = JSON.stringify({ status: 401, code: 'expired' });
    const given = response(text, 'Application/Problem+JSON ; charset=utf-8', 401);
    const challenged = { ...given, headers: { ...given.headers, 'www-authenticate': 'Bearer error="invalid_token"' } };
    expect(compare(challenged, [{ status: 401, error: 'invalid_token', codes: ['expired'] }])).toEqual([]);
  });

  it('an operation that responded to good tokens only with redirects is without success', () => {
    const documented = documentedResponses({ openapi: '3.1.0', paths: {} }, '')(operation);
    const report = (...accepted: number[]) => {
      const of = { name: 'GET /orders', access: 'token', security: [], alsoNeeds: [] };
      const tested = { ...operation, ...of, documented };
      const operations = [tested as unknown as Operation];
      const findings = noFindings();
      Object.assign(findings.of(operations[0]!), { isCalled: true, accepted: new Set(accepted) });
      return contractReport(operations, findings);
    };
    expect(report(302).notTested).toEqual(['GET /orders: good tokens got 302; give values that exist in "requests"']);
    expect(report(302, 204)).toMatchObject({ tested: ['GET /orders'], notTested: [] });
  });
});

describe('appTarget()', () => {
  it('does not attribute responses that Node sends itself to the handler of the previous request', async () => {
    const app = express();
    app.get('/orders', function listOrders(_req, res) {
      res.json([]);
    });
    const { call } = appTarget(app, { beforeGuard: [], headers: undefined });
    const request = { method: 'GET', target: '/orders', headers: {}, body: undefined };
    const before = await call(request);
    const refused = await call({ ...request, headers: { expect: 'a-miracle' } });
    expect([...before.trace.ran].map((one) => (one as { name: string }).name)).toEqual(['listOrders']);
    expect(refused.response).toMatchObject({ status: 417, localPort: before.response.localPort });
    expect([...refused.trace.ran]).toEqual([]);
  });
});
