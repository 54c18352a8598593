/** What the kit makes of a document: operations with who may call them, scopes, a request, what responses may be. */
export type Part = 'operations' | 'scopes' | 'request' | 'responses' | 'names' | 'base' | 'leaks';

/** Sets a value in the document below, which changes one part of what the kit makes of it; `first` prepares the document. */
export type Effect = readonly [part: Part, path: string, value: unknown, first?: Readonly<Record<string, unknown>>];

/** `POST /a/{id}` with a parameter of each kind, a body and a response; `/` of names is written as it is in {@link Effect}. */
export const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'A', version: '1' },
  servers: [{ url: '/{stage}', variables: { stage: { default: 'v1' } } }],
  security: [],
  paths: {
    A: {
      post: {
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
          {
            name: 'p',
            in: 'query',
            required: true,
            schema: { type: 'array', items: { type: 'integer' } },
            example: [7, 8],
          },
          { $ref: '#/components/parameters/h' },
        ],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Body' } } } },
        responses: { 200: { $ref: '#/components/responses/Ok' } },
      },
    },
  },
  components: {
    schemas: {
      Body: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      Kind: { type: 'object' },
    },
    parameters: { h: { name: 'x-h', in: 'header', required: true, schema: { const: 'h' } } },
    responses: { Ok: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Body' } } } } },
    examples: { E: { value: { a: 'named' } } },
    requestBodies: { B: { content: { 'text/plain': { schema: { const: 'B' } } } } },
    pathItems: { P: { delete: {} } },
    mediaTypes: { M: { schema: { const: 'M' } } },
    securitySchemes: {
      oauth: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/t', scopes: { a: '' } } } },
      key: { type: 'apiKey', in: 'header', name: 'X-Key' },
      basic: { type: 'http', scheme: 'basic' },
    },
  },
};

const OPERATION = 'paths A post';
const P = `${OPERATION} parameters 1`;
const BODY = `${OPERATION} requestBody content application/json`;
const SCHEMA = 'components schemas Body';
const KEY = { [`${OPERATION} security`]: [{ key: [] }] };
const OAUTH = { [`${OPERATION} security`]: [{ oauth: ['a'] }] };
const BOTH = { [`${OPERATION} security`]: [{ oauth: [], key: [] }] };
const BASIC = { [`${OPERATION} security`]: [{ basic: [] }] };
const schema = (before: object, field: string, value: unknown): Effect => [
  'request',
  `${SCHEMA} ${field}`,
  value,
  { [SCHEMA]: before },
];
const KIND = { $ref: '#/components/schemas/Kind' };
const ONE_OF = { [SCHEMA]: { oneOf: [KIND], discriminator: { propertyName: 'kind' } } };
const OBJECT = { [SCHEMA]: { type: 'object' } };
const text = { type: 'string' };
const SLASH = { [`${P} example`]: 'a/b', [`${P} schema`]: text };
const number = { type: 'integer' };
const choices = [{ type: 'object', required: ['b'], properties: { b: { const: 1 } } }];

/** A field that is used, with a change of it that matters. */
export const EFFECTS: Readonly<Record<string, Effect>> = {
  'OpenAPI.openapi': ['responses', 'openapi', '3.0.3', { [SCHEMA]: { type: 'string', nullable: true } }],
  'OpenAPI.servers': ['base', 'servers', [{ url: '/v2' }]],
  'OpenAPI.paths': ['operations', 'paths', {}],
  'OpenAPI.components': ['operations', 'components', { parameters: DOCUMENT.components.parameters }, KEY],
  'OpenAPI.security': ['operations', 'security', [{ oauth: ['a'] }]],
  'Server.url': ['base', 'servers 0 url', '/v3'],
  'Server.variables': ['base', 'servers 0 variables', { stage: { default: 'test' } }],
  'Server Variable.default': ['base', 'servers 0 variables stage default', 'live'],
  'Components.schemas': ['request', 'components schemas', { Body: { const: 'x' } }],
  'Components.responses': ['responses', 'components responses Ok content application/json schema', { type: 'integer' }],
  'Components.parameters': ['request', 'components parameters h schema const', 'other'],
  'Components.examples': ['request', `${BODY} examples`, { e: { $ref: '#/components/examples/E' } }],
  'Components.requestBodies': ['request', `${OPERATION} requestBody`, { $ref: '#/components/requestBodies/B' }],
  'Components.securitySchemes': ['operations', 'components securitySchemes key', { type: 'oauth2', flows: {} }, KEY],
  'Components.pathItems': ['operations', 'paths B', { $ref: '#/components/pathItems/P' }],
  'Components.mediaTypes': ['request', BODY, { $ref: '#/components/mediaTypes/M' }],
  'Path Item.$ref': ['operations', 'paths A $ref', '#/components/pathItems/P'],
  ...Object.fromEntries(
    ['get', 'put', 'delete', 'options', 'head', 'patch', 'trace', 'query'].map((method): [string, Effect] => [
      `Path Item.${method}`,
      ['operations', `paths A ${method}`, {}],
    ]),
  ),
  'Path Item.post': ['operations', 'paths A post', undefined],
  'Path Item.additionalOperations': ['operations', 'paths A additionalOperations', { PURGE: {} }],
  'Path Item.servers': ['operations', 'paths A servers', [{ url: 'https://elsewhere.example' }]],
  'Path Item.parameters': ['request', 'paths A parameters', [{ name: 'q', in: 'query', required: true, example: 1 }]],
  'Operation.operationId': ['names', `${OPERATION} operationId`, 'sampled'],
  'Operation.parameters': ['request', `${OPERATION} parameters`, []],
  'Operation.requestBody': ['request', `${OPERATION} requestBody`, undefined],
  'Operation.responses': ['responses', `${OPERATION} responses`, { 201: {} }],
  'Operation.security': ['operations', `${OPERATION} security`, [{ oauth: [] }]],
  'Operation.servers': ['operations', `${OPERATION} servers`, [{ url: '/elsewhere' }]],
  'Parameter.name': ['request', `${P} name`, 'other'],
  'Parameter.in': ['request', `${P} in`, 'cookie'],
  'Parameter.required': ['request', `${P} required`, false],
  'Parameter.style': ['request', `${P} style`, 'pipeDelimited', { [`${P} explode`]: false }],
  'Parameter.explode': ['request', `${P} explode`, false],
  'Parameter.allowReserved': ['request', `${P} allowReserved`, true, SLASH],
  'Parameter.schema': ['request', `${P} schema`, { const: 3 }],
  'Parameter.example': ['request', `${P} example`, [9]],
  'Parameter.examples': ['request', `${P} examples`, { one: { value: [5] } }, { [`${P} example`]: undefined }],
  'Parameter.content': ['request', `${P} content`, { 'application/json': { example: { a: 1 } } }],
  'Request Body.content': ['request', `${OPERATION} requestBody content`, { 'text/plain': { example: 'x' } }],
  'Media Type.schema': ['request', `${BODY} schema`, { const: 1 }],
  'Media Type.example': ['request', `${BODY} example`, { a: 'given' }],
  'Media Type.examples': ['request', `${BODY} examples`, { one: { value: { a: 'one' } } }],
  'Responses.default': ['responses', `${OPERATION} responses default`, {}],
  'Responses.status code': ['responses', `${OPERATION} responses 404`, {}],
  'Response.content': ['responses', 'components responses Ok content', { 'text/html': {} }],
  'Example.value': ['request', `${BODY} examples one value`, { a: 'v' }, { [`${BODY} examples`]: { one: {} } }],
  'Example.dataValue': ['request', `${BODY} examples one dataValue`, { a: 'd' }, { [`${BODY} examples`]: { one: {} } }],
  'Reference.$ref': ['request', `${BODY} schema $ref`, '#/components/schemas/Kind'],
  'Schema.type': schema({ type: 'string' }, 'type', 'integer'),
  'Schema.properties': schema({ type: 'object', required: ['a'] }, 'properties', { a: { const: 1 } }),
  'Schema.required': schema({ type: 'object', properties: { b: text } }, 'required', ['b']),
  'Schema.items': schema({ type: 'array', minItems: 1, items: text }, 'items', { const: 1 }),
  'Schema.prefixItems': schema({ type: 'array', minItems: 1 }, 'prefixItems', [{ const: 1 }]),
  'Schema.allOf': schema({ type: 'object' }, 'allOf', choices),
  'Schema.oneOf': schema({ type: 'object' }, 'oneOf', choices),
  'Schema.anyOf': schema({ type: 'object' }, 'anyOf', choices),
  'Schema.enum': schema(text, 'enum', ['b']),
  'Schema.const': schema(text, 'const', 'c'),
  'Schema.default': schema(text, 'default', 'd'),
  'Schema.example': schema(text, 'example', 'e'),
  'Schema.examples': schema(text, 'examples', ['e']),
  'Schema.format': schema(text, 'format', 'uuid'),
  'Schema.pattern': schema(text, 'pattern', '^[xyz]{3}$'),
  'Schema.minLength': schema(text, 'minLength', 9),
  'Schema.maxLength': schema(text, 'maxLength', 3),
  'Schema.minimum': schema(number, 'minimum', 9),
  'Schema.maximum': schema(number, 'maximum', -9),
  'Schema.exclusiveMinimum': schema(number, 'exclusiveMinimum', 9),
  'Schema.exclusiveMaximum': schema(number, 'exclusiveMaximum', -9),
  'Schema.multipleOf': schema(number, 'multipleOf', 7),
  'Schema.minItems': schema({ type: 'array', items: text }, 'minItems', 2),
  'Schema.maxItems': ['responses', `${SCHEMA} maxItems`, 0, { [SCHEMA]: { type: 'array' } }],
  'Schema.uniqueItems': schema({ type: 'array', minItems: 2, items: number }, 'uniqueItems', true),
  'Schema.minProperties': schema({ type: 'object' }, 'minProperties', 2),
  'Schema.maxProperties': ['responses', `${SCHEMA} maxProperties`, 0, OBJECT],
  'Schema.additionalProperties': ['responses', `${SCHEMA} additionalProperties`, false, OBJECT],
  'Schema.nullable': ['responses', `${SCHEMA} nullable`, true, { openapi: '3.0.3' }],
  'Schema.readOnly': ['request', `${SCHEMA} properties a readOnly`, true],
  'Schema.writeOnly': ['leaks', `${SCHEMA} properties a writeOnly`, true],
  'Schema.discriminator': schema({ oneOf: [KIND] }, 'discriminator', { propertyName: 'kind' }),
  'Schema.$defs': [
    'request',
    `${SCHEMA} $defs D const`,
    2,
    { [SCHEMA]: { $defs: { D: { const: 1 } }, $ref: `#/components/schemas/Body/$defs/D` } },
  ],
  'Discriminator.propertyName': ['request', `${SCHEMA} discriminator propertyName`, 'sort', ONE_OF],
  'Discriminator.mapping': ['request', `${SCHEMA} discriminator mapping`, { k: KIND.$ref }, ONE_OF],
  'Security Scheme.type': ['operations', 'components securitySchemes oauth type', 'mutualTLS', OAUTH],
  'Security Scheme.name': ['operations', 'components securitySchemes key name', 'Authorization', KEY],
  'Security Scheme.in': ['operations', 'components securitySchemes key in', 'query', BOTH],
  'Security Scheme.scheme': ['operations', 'components securitySchemes basic scheme', 'bearer', BASIC],
  'Security Scheme.flows': ['scopes', 'components securitySchemes oauth flows', {}],
  'OAuth Flow.scopes': ['scopes', 'components securitySchemes oauth flows clientCredentials scopes', { b: '' }],
  'Security Requirement.name of a scheme': ['operations', `${OPERATION} security`, [{ key: [] }]],
};
