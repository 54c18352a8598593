import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { load } from 'js-yaml';
import { REASONS } from '../../../src/gate';
import { RESOURCES } from '../../../src/app/commerce/resources';
import { allOperations, loadDocument } from '../../../src/testing/openapi/document';

type Json = Readonly<Record<string, unknown>>;

interface Media {
  readonly schema: Json;
  readonly example?: unknown;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly 'x-optional-scopes'?: readonly string[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Json>>;
}

interface Document {
  readonly openapi: string;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Json & { readonly servers?: unknown }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Json>>;
    readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, Media>> }>>;
    readonly securitySchemes: Readonly<Record<string, Json>>;
  };
}

const text = readFileSync(`${__dirname}/../../../openapi.yaml`, 'utf8');
const document = load(text) as Document;
// Validates every schema against the dialect, which is skipped at start for speed.
const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true, validateSchema: true })).addSchema(
  document,
  'contract',
);

const METHODS = ['get', 'post', 'patch', 'delete'];
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => method in item).map(
    (method) => [`${method.toUpperCase()} ${path}`, item[method] as Operation] as const,
  ),
);
const commerce = operations.filter(([name]) => name.includes(' /v1/'));

describe('openapi.yaml', () => {
  it('is OpenAPI 3.1', () => {
    expect(document.openapi).toBe('3.1.0');
  });

  it('has no dangling reference', () => {
    const references = new Set([...text.matchAll(/\$ref: '#\/([^']+)'/g)].map(([, path = '']) => path));
    const broken = [...references].filter((path) => {
      return path.split('/').reduce<unknown>((at, name) => (at as Json | undefined)?.[name], document) === undefined;
    });
    expect(references.size).toBeGreaterThan(60);
    expect(broken).toEqual([]);
  });

  it('describes the parameters of every path, in order', () => {
    const described = allOperations(loadDocument('openapi.yaml')).map(({ path, parameters }) => [
      [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name),
      parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
    ]);
    expect(described.map(([inPath]) => inPath)).toEqual(described.map(([, names]) => names));
  });

  it('has no unused component', () => {
    const { schemas, responses } = document.components;
    const names = [
      ...Object.keys(schemas).map((name) => `schemas/${name}`),
      ...Object.keys(responses).map((name) => `responses/${name}`),
    ];
    expect(names.filter((name) => !text.includes(`'#/components/${name}'`))).toEqual([]);
  });

  it('gives every operation a unique name, an existing tag and a summary', () => {
    const tags = document.tags.map(({ name }) => name);
    const ids = operations.map(([, { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(operations.length);
    for (const [, operation] of operations) {
      expect(tags).toEqual(expect.arrayContaining([...operation.tags]));
      expect(operation.summary).not.toBe('');
    }
  });

  it('names operations after their rows, and says where customers:pii shows more', () => {
    const verbs = { GET: ['list', 'get'], POST: ['create'], PATCH: ['update'], DELETE: ['remove'] };
    for (const { path, schema } of RESOURCES) {
      const plural = schema.replace(/y$/, 'ie') + 's';
      const own = commerce.filter(([name]) => new RegExp(`^[A-Z]+ /v1/${path}(/\\{id\\})?$`).test(name));
      for (const [name, { operationId }] of own) {
        const method = name.split(' ')[0] as keyof typeof verbs;
        const names = verbs[method].map((verb) => verb + (verb === 'list' ? plural : schema));
        expect(names).toContain(operationId);
      }
    }
    const optional = commerce
      .filter(([, operation]) => 'x-optional-scopes' in operation)
      .map(([, one]) => one.operationId);
    expect(optional.sort()).toEqual(['createCustomer', 'getCustomer', 'listCustomers', 'updateCustomer']);
  });

  it('has three or more examples of every row, which are correct and have ids in order', () => {
    for (const { schema } of RESOURCES) {
      const { examples } = document.components.schemas[schema] as { examples: { id: string }[] };
      const prefix = examples[0]!.id.slice(0, 4);
      expect(examples.length).toBeGreaterThanOrEqual(3);
      expect(examples.map(({ id }) => id)).toEqual(examples.map((_, index) => `${prefix}000${index + 1}`));
      const validate = ajv.compile({ $ref: `contract#/components/schemas/${schema}` });
      for (const example of examples) expect(validate(example)).toBe(true);
    }
  });

  it('declares the client credentials grant with every scope', () => {
    const { flows } = document.components.securitySchemes['oauth2'] as { flows: Json };
    expect(Object.keys(flows)).toEqual(['clientCredentials']);
    const flow = flows['clientCredentials'] as { tokenUrl: string; scopes: Readonly<Record<string, string>> };
    expect(flow.tokenUrl).toMatch(/\/connect\/token$/);
    expect(Object.keys(flow.scopes)).toEqual(Object.keys(flow.scopes).sort());
    expect(Object.keys(flow.scopes)).toHaveLength(29);
    expect(Object.values(flow.scopes).filter((description) => description.length < 5)).toEqual([]);
  });

  it('has the token endpoint, on a separate server', () => {
    expect(document.paths['/connect/token']).toMatchObject({ servers: [{ url: '{auth_url}' }] });
  });

  it('has the code of every reason', () => {
    const { enum: codes } = document.components.schemas['ProblemCode'] as { enum: string[] };
    expect(codes).toEqual(expect.arrayContaining(Object.keys(REASONS)));
    expect(new Set(codes).size).toBe(codes.length);
  });

  it.each(Object.keys(document.components.schemas))('has a schema %s that the dialect allows', (name) => {
    expect(() => ajv.compile({ $ref: `contract#/components/schemas/${name}` })).not.toThrow();
  });

  it.each(Object.entries(document.components.responses))('has a correct example of %s', (_name, { content }) => {
    const { example } = content['application/problem+json'] as { example: Json };
    const validate = ajv.compile({ $ref: 'contract#/components/schemas/Problem' });
    validate(example);
    expect(validate.errors).toBeNull();
    expect(example['type']).toBe(`http://127.0.0.1:3000/problems/${String(example['code'])}`);
  });

  it.each(commerce)('names every refusal of %s', (name, { responses, requestBody }) => {
    const expected = ['400', '401', '403', '429', '500', '503'];
    if (name.includes('{id}')) expected.push('404');
    if (requestBody) expected.push('413', '415');
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(expected));
  });

  it.each(commerce.filter(([, { requestBody }]) => requestBody))(
    'takes no unknown member on %s',
    (_name, operation) => {
      const { schema, example } = operation.requestBody?.content['application/json'] as Media;
      const body = document.components.schemas[String(schema['$ref']).replace('#/components/schemas/', '')];
      expect(body).toMatchObject({ type: 'object', additionalProperties: false });
      const validate = ajv.compile({ $ref: `contract${String(schema['$ref'])}` });
      expect(validate(example)).toBe(true);
      expect(validate({ ...(example as object), unknown_member: 1 })).toBe(false);
    },
  );
});
