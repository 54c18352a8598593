import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepareRequest } from '../../../src/testing/contract/samples';
import { declaredScopes, everyOperation, loadDocument } from '../../../src/testing/openapi/document';

const SCHEMES = {
  oauth: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/t', scopes: { a: '', b: '' } } } },
  bearer: { type: 'http', scheme: 'Bearer' },
  basic: { type: 'http', scheme: 'basic' },
  key: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
  header: { type: 'apiKey', in: 'header', name: 'Authorization' },
  openid: { type: 'openIdConnect', openIdConnectUrl: '/o' },
  alias: { $ref: '#/components/securitySchemes/bearer' },
};

/** A document with these members. */
const documentOf = (members: object, openapi = '3.1.0') =>
  loadDocument({ openapi, components: { securitySchemes: SCHEMES, x: KINDS }, paths: {}, ...members });
/** Kinds of a discriminator, and a schema that requires itself. */
const KINDS = {
  Cat: { type: 'object', properties: { kind: { type: 'string' } } },
  Loop: { type: 'object', required: ['loop'], properties: { loop: { $ref: '#/components/x/Loop' } } },
};

describe('the security of an operation', () => {
  function securityOf(own: unknown, whole?: unknown) {
    const get = own === undefined ? {} : { security: own };
    const document = documentOf({ paths: { '/a': { get } }, ...(whole !== undefined && { security: whole }) });
    const [operation] = everyOperation(document);
    return [operation?.access, operation?.security, operation?.alsoNeeds];
  }

  const OF_DOCUMENT = [{ oauth: ['a'] }];
  const INHERITED = ['token', [['a']], []];
  it.each<[string, unknown, readonly unknown[], unknown?]>([
    ['is nothing where the document says nothing', undefined, ['anybody', [], []]],
    ['is that of the document', undefined, INHERITED, OF_DOCUMENT],
    ['replaces that of the document', [], ['anybody', [], []], OF_DOCUMENT],
    ['is that of the document where it is null', null, INHERITED, OF_DOCUMENT],
    ['is that of the document where it is a list of null', [null], INHERITED, OF_DOCUMENT],
    ['is that of the document where it is an object', {}, INHERITED, OF_DOCUMENT],
    ['is optional with an empty requirement', [{}, { oauth: ['a'] }], ['anybody', [[], ['a']], []]],
    ['has the scopes of all schemes', [{ oauth: ['a'], openid: ['b'] }], ['token', [['a', 'b']], []]],
    ['takes alternatives by a token before others', [{ basic: [] }, { bearer: [] }], ['token', [[]], []]],
    ['prefers a requirement without a key', [{ oauth: ['a'], key: [] }, { oauth: ['b'] }], ['token', [['b']], []]],
    ['names what a token needs beside it', [{ oauth: ['a'], key: [] }], ['token', [['a']], ['header X-Api-Key']]],
    ['takes a key in Authorization for a bearer token', [{ header: [] }], ['token', [[]], []]],
    ['follows a reference to a scheme', [{ alias: [] }], ['token', [[]], []]],
    ['takes a scheme that is not declared for a token', [{ lost: ['a'] }], ['token', [['a']], []]],
    ['is another one with a key or a password', [{ key: [] }, { basic: [] }], ['other', [], []]],
    ['has no scopes where they are null', [{ oauth: null }], ['token', [[]], []]],
  ])('%s', (_what, own, expected, ...whole) => {
    expect(securityOf(own, ...whole)).toEqual(expected);
  });
});

describe('the operations of a document', () => {
  const namesOf = (paths: object, openapi?: string) =>
    everyOperation(documentOf({ paths }, openapi)).map(({ method, path, access }) => `${method} ${path} ${access}`);

  const elsewhere = [{ url: 'https://b' }];
  const [GET_A, GET_B] = ['GET /a anybody', 'GET /b anybody'];
  const named = { additionalOperations: { PURGE: {}, COPY: {} } };
  it.each<[string, object, readonly string[]]>([
    ['are none without paths', {}, []],
    ['are no members with x- or null', { 'x-internal': null, '/a': null, '/b': { get: null, 'x-a': {} } }, []],
    ['have every method', { '/a': { query: {}, trace: {} } }, ['TRACE /a anybody', 'QUERY /a anybody']],
    ['have methods without a field of their own (3.2)', { '/a': named }, ['PURGE /a anybody', 'COPY /a anybody']],
    ['have servers of the path', { '/a': { servers: elsewhere, get: {} } }, ['GET /a elsewhere']],
    ['have servers of their own', { '/b': { get: { servers: [{ url: '/c' }] } } }, ['GET /b elsewhere']],
    ['are those of a path by reference', { '/a': { $ref: '#/paths/~1b' }, '/b': { get: {} } }, [GET_A, GET_B]],
  ])('%s', (_what, paths, expected) => {
    expect(namesOf(paths)).toEqual(expected);
  });

  it('are none in a document of webhooks', () => {
    expect(everyOperation(loadDocument({ openapi: '3.1.0', webhooks: { a: { post: {} } } }))).toEqual([]);
  });

  it('come from files beside the document too', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tillgate-openapi-'));
    const write = (name: string, content: object): void => writeFileSync(join(folder, name), JSON.stringify(content));
    write('openapi.json', {
      ...{ openapi: '3.1.0', paths: { '/orders/{id}': { $ref: 'paths.json#/order' } } },
      components: { securitySchemes: { oauth: { $ref: 'parts/../schemes.json#/~1oauth' } } },
    });
    write('paths.json', {
      order: { parameters: [{ $ref: '#/id' }], get: { security: [{ oauth: ['a'] }] } },
      id: { name: 'id', in: 'path', required: true, schema: { $ref: 'openapi.json#/x-id' } },
    });
    write('schemes.json', { '/oauth': SCHEMES.oauth });
    const document = loadDocument(join(folder, 'openapi.json'));
    rmSync(folder, { recursive: true });
    const [operation] = everyOperation(document);
    expect(operation).toMatchObject({ method: 'GET', access: 'token', security: [['a']] });
    expect(operation?.parameters).toMatchObject([{ name: 'id' }]);
    expect(declaredScopes(document)).toEqual(['a', 'b']);
  });

  it.each([
    ['Swagger 2', { swagger: '2.0', paths: {} }, 'convert Swagger 2 with npx swagger2openapi'],
    ['version 4', { openapi: '4.0.0', paths: {} }, 'expected an OpenAPI 3 document'],
    ['no object', [], 'expected an OpenAPI 3 document'],
  ])('are refused for %s', (_what, document, message) => {
    expect(() => loadDocument(document)).toThrow(message);
  });
});

describe('the request of an operation', () => {
  /** The request of an operation with these members. */
  function requestOf(path: string, operation: object, { isTaken = () => false, openapi = '3.1.0' } = {}) {
    const document = documentOf({ paths: { [path]: { post: operation } } }, openapi);
    const [at] = everyOperation(document);
    return prepareRequest(document, at!, {}, isTaken);
  }
  const parameter = (members: object, value: unknown) => ({
    parameters: [{ name: 'p', in: 'query', required: true, schema: {}, example: value, ...members }],
  });

  const JSON_CONTENT = { 'application/json': { example: { a: 1 } } };
  const FORM_CONTENT = { 'application/x-www-form-urlencoded': { example: { a: 1 } } };
  it.each<[string, object, unknown, string]>([
    ['a text', {}, 'a b&c', '/a?p=a%20b%26c'],
    ['reserved characters', { allowReserved: true }, 'a/b?c', '/a?p=a/b?c'],
    ['a list', {}, [1, 2], '/a?p=1&p=2'],
    ['a list in one value', { explode: false }, [1, 2], '/a?p=1,2'],
    ['a list with spaces', { style: 'spaceDelimited', explode: false }, [1, 2], '/a?p=1%202'],
    ['a list with pipes', { style: 'pipeDelimited', explode: false }, [1, 2], '/a?p=1%7C2'],
    ['an object', {}, { a: 1, b: 2 }, '/a?a=1&b=2'],
    ['an object in one value', { explode: false }, { a: 1, b: 2 }, '/a?p=a,1,b,2'],
    ['a deep object', { style: 'deepObject', explode: true }, { a: { b: 1 }, c: [2] }, '/a?p[a][b]=1&p[c][]=2'],
    ['JSON', { schema: undefined, content: JSON_CONTENT }, undefined, '/a?p=%7B%22a%22%3A1%7D'],
    ['a whole query (3.2)', { in: 'querystring', content: FORM_CONTENT }, undefined, '/a?a=1'],
  ])('writes %s in the query', (_what, members, value, expected) => {
    expect(requestOf('/a', parameter(members, value)).target).toBe(expected);
  });

  it.each<[string, object, unknown, string]>([
    ['a text', {}, 'a/b', '/a/a%2Fb/c'],
    ['a list', {}, [1, 2], '/a/1,2/c'],
    ['a label', { style: 'label', explode: true }, [1, 2], '/a/.1.2/c'],
    ['a matrix', { style: 'matrix' }, { a: 1 }, '/a/;p=a,1/c'],
    ['a matrix of members', { style: 'matrix', explode: true }, { a: 1, b: 2 }, '/a/;a=1;b=2/c'],
    ['something for an empty value', {}, '', '/a/sample/c'],
  ])('writes %s in the path', (_what, members, value, expected) => {
    expect(requestOf('/a/{p}/c', parameter({ in: 'path', ...members }, value)).target).toBe(expected);
  });

  it('encodes a space and a bracket of the path', () => {
    expect(requestOf('/a b/[c]', {}).target).toBe('/a%20b/%5Bc%5D');
  });

  it('takes no example that leads to another path', () => {
    const schema = { type: 'string', example: 'me' };
    const operation = { parameters: [{ name: 'id', in: 'path', required: true, schema }] };
    const isTaken = (path: string): boolean => path === '/users/me';
    expect(requestOf('/users/{id}', operation, { isTaken } as never).target).toBe('/users/sample');
  });

  it('has the headers and cookies that are required, except for those that the specification ignores', () => {
    const required = (place: string, name: string) => ({ name, in: place, required: true, schema: { const: 1 } });
    const parameters = [required('header', 'X-A'), required('header', 'Authorization'), required('cookie', 'c')];
    expect(requestOf('/a', { parameters }).headers).toEqual({ 'X-A': '1', cookie: 'c=1' });
  });

  const json = (schema: object, openapi?: string) =>
    JSON.parse(
      requestOf('/a', { requestBody: { content: { 'application/json': { schema } } } }, { openapi }).body ?? '',
    ) as unknown;
  const members = (properties: object) => ({ type: 'object', required: Object.keys(properties), properties });

  const READ_ONLY = members({ id: { readOnly: true } });
  const CAT = { $ref: '#/components/x/Cat' };
  const KIND = { oneOf: [CAT], discriminator: { propertyName: 'kind', mapping: { cat: CAT.$ref } } };
  const LOOP = { anyOf: [{ $ref: '#/components/x/Loop' }, { const: 1 }] };
  const DIFFERENT = { type: 'array', minItems: 2, uniqueItems: true, items: { enum: ['a', 'b'] } };
  it.each<[string, object, unknown, string?]>([
    ['no read-only member, also a required one', members({ id: { readOnly: true }, a: { const: 1 } }), { a: 1 }],
    ['no read-only member of an example', { ...READ_ONLY, example: { id: 1, a: 2 } }, { a: 2 }],
    ['a number above a boolean limit', { type: 'integer', minimum: 3, exclusiveMinimum: true }, 4, '3.0.3'],
    ['different items', DIFFERENT, ['a', 'b']],
    ['null for a nullable without a type', { nullable: true, enum: [null, 'a'] }, null, '3.0.3'],
    ['a text for a pattern that the flag u forbids', { type: 'string', pattern: '^\\-a$' }, '-a'],
    ['a value of the schema for an example that it forbids', { type: 'integer', example: 'one' }, 1],
    ['the name of its kind, for a discriminator', KIND, { kind: 'cat' }],
    ['an alternative that does not require itself', LOOP, 1],
  ])('has a body with %s', (_what, schema, expected, ...openapi) => {
    expect(json(schema, ...openapi)).toEqual(expected);
  });

  it('sends an upload as multipart/form-data', () => {
    const schema = members({ file: { type: 'string', format: 'binary' }, kind: { const: 'a' } });
    const { headers, body } = requestOf('/a', { requestBody: { content: { 'multipart/form-data': { schema } } } });
    expect(headers['content-type']).toBe('multipart/form-data; boundary=contract-cases-boundary');
    expect(body?.split('\r\n')).toEqual([
      '--contract-cases-boundary',
      'Content-Disposition: form-data; name="file"; filename="file.txt"',
      'Content-Type: text/plain',
      '',
      'sample',
      '--contract-cases-boundary',
      'Content-Disposition: form-data; name="kind"',
      '',
      'a',
      '--contract-cases-boundary--',
      '',
    ]);
  });
});
