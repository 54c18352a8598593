/** What the kit does with a field of an OpenAPI document: `used`, `refused` by name, or why it has no bearing on authorization. */
export type Treatment = 'used' | 'refused' | `no bearing: ${string}`;

type Fields = Readonly<Record<string, Treatment>>;

const TEXT = 'no bearing: text for people';
const VALUES = 'no bearing: what a response may hold is judged by its schema';
const RENDERING = 'no bearing: how a value looks in XML or in a page';
const OTHERS = 'no bearing: requests that the API sends, not that it gets';

/** Fields that are used. */
const used = (names: string): Fields => Object.fromEntries(names.split(' ').map((name) => [name, 'used' as const]));

const DESCRIBED: Fields = { description: TEXT, summary: TEXT };
const REFERENCE: Fields = { $ref: 'used', ...DESCRIBED };
const PARAMETER: Fields = {
  ...{ description: TEXT, deprecated: TEXT },
  ...used('required style explode schema example examples content'),
};
const OPERATION_LISTS = used('get put post delete options head patch trace query additionalOperations');

/** Every field of every object of OpenAPI 3.0, 3.1 and 3.2. */
export const FIELDS: Readonly<Record<string, Fields>> = {
  OpenAPI: {
    ...used('openapi servers paths components security'),
    ...{ info: TEXT, tags: TEXT },
    ...{ externalDocs: TEXT, webhooks: OTHERS, $self: 'no bearing: references are followed from the file itself' },
    jsonSchemaDialect: 'no bearing: every schema is read as JSON Schema 2020-12',
    swagger: 'refused',
  },
  Server: { url: 'used', ...DESCRIBED, name: TEXT, variables: 'used' },
  'Server Variable': { default: 'used', enum: 'no bearing: the default is one of them', description: TEXT },
  Components: {
    ...used('schemas responses parameters examples requestBodies securitySchemes pathItems mediaTypes'),
    ...{ headers: VALUES, links: OTHERS, callbacks: OTHERS },
  },
  'Path Item': { ...REFERENCE, ...OPERATION_LISTS, servers: 'used', parameters: 'used' },
  Operation: {
    ...used('operationId parameters requestBody responses security servers'),
    ...{ tags: TEXT, ...DESCRIBED, externalDocs: TEXT, callbacks: OTHERS, deprecated: TEXT },
  },
  Parameter: {
    ...{ ...PARAMETER, name: 'used', in: 'used', allowReserved: 'used' },
    allowEmptyValue: 'no bearing: a value that is not empty is allowed too',
  },
  'Request Body': { description: TEXT, content: 'used', required: 'no bearing: a body is sent in any case' },
  'Media Type': {
    ...{ schema: 'used', example: 'used', examples: 'used', itemSchema: VALUES },
    ...{ encoding: RENDERING, prefixEncoding: RENDERING, itemEncoding: RENDERING },
  },
  Responses: { default: 'used', 'status code': 'used' },
  Response: { ...DESCRIBED, headers: VALUES, content: 'used', links: OTHERS },
  Example: {
    ...{ ...DESCRIBED, value: 'used', dataValue: 'used' },
    externalValue: 'no bearing: a value is made from the schema instead',
    serializedValue: 'no bearing: a value is made from the schema instead',
  },
  Reference: REFERENCE,
  Schema: {
    ...used('type properties required items prefixItems allOf oneOf anyOf enum const default example'),
    ...used('examples format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum'),
    ...used('multipleOf minItems maxItems uniqueItems minProperties maxProperties additionalProperties'),
    ...used('nullable readOnly writeOnly discriminator $defs'),
    ...{ xml: RENDERING, externalDocs: TEXT, deprecated: TEXT, title: TEXT, description: TEXT },
    ...{ contentEncoding: RENDERING, contentMediaType: RENDERING, contentSchema: RENDERING },
  },
  Discriminator: { propertyName: 'used', mapping: 'used', defaultMapping: 'no bearing: the first kind is sent' },
  'Security Scheme': {
    ...{ type: 'used', description: TEXT, name: 'used', in: 'used', scheme: 'used', bearerFormat: TEXT, flows: 'used' },
    openIdConnectUrl: 'no bearing: tokens come from the test issuer',
    oauth2MetadataUrl: 'no bearing: tokens come from the test issuer',
    deprecated: TEXT,
  },
  'OAuth Flow': {
    scopes: 'used',
    authorizationUrl: 'no bearing: tokens come from the test issuer',
    deviceAuthorizationUrl: 'no bearing: tokens come from the test issuer',
    tokenUrl: 'no bearing: tokens come from the test issuer',
    refreshUrl: 'no bearing: tokens come from the test issuer',
  },
  'Security Requirement': { 'name of a scheme': 'used' },
};
