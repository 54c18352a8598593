/** What the kit does with a field of an OpenAPI document: `used`, `refused` by name, or why it has no bearing on authorization. */
export type Treatment = 'used' | 'refused' | `no bearing: ${string}`;

type Fields = Readonly<Record<string, Treatment>>;

const TEXT = 'no bearing: text for people';
const VALUES = 'no bearing: what a response may hold is judged by its schema';
const RENDERING = 'no bearing: how a value looks in XML or in a page';
const OTHERS = 'no bearing: requests that the API sends, not that it gets';

const DESCRIBED: Fields = { description: TEXT, summary: TEXT };
const REFERENCE: Fields = { $ref: 'used', ...DESCRIBED };
const PARAMETER: Fields = {
  ...{ description: TEXT, required: 'used', deprecated: TEXT, style: 'used', explode: 'used', schema: 'used' },
  ...{ example: 'used', examples: 'used', content: 'used' },
};
const OPERATION_LISTS: Fields = {
  ...{
    get: 'used',
    put: 'used',
    post: 'used',
    delete: 'used',
    options: 'used',
    head: 'used',
    patch: 'used',
    trace: 'used',
  },
  ...{ query: 'used', additionalOperations: 'used' },
};

/** Every field of every object of OpenAPI 3.0, 3.1 and 3.2. */
export const FIELDS: Readonly<Record<string, Fields>> = {
  OpenAPI: {
    ...{
      openapi: 'used',
      info: TEXT,
      servers: 'used',
      paths: 'used',
      components: 'used',
      security: 'used',
      tags: TEXT,
    },
    ...{ externalDocs: TEXT, webhooks: OTHERS, $self: 'no bearing: references are followed from the file itself' },
    jsonSchemaDialect: 'no bearing: every schema is read as JSON Schema 2020-12',
    swagger: 'refused',
  },
  Server: { url: 'used', ...DESCRIBED, name: TEXT, variables: 'used' },
  'Server Variable': { default: 'used', enum: 'no bearing: the default is one of them', description: TEXT },
  Components: {
    ...{
      schemas: 'used',
      responses: 'used',
      parameters: 'used',
      examples: 'used',
      requestBodies: 'used',
      headers: VALUES,
    },
    ...{ securitySchemes: 'used', links: OTHERS, callbacks: OTHERS, pathItems: 'used', mediaTypes: 'used' },
  },
  'Path Item': { ...REFERENCE, ...OPERATION_LISTS, servers: 'used', parameters: 'used' },
  Operation: {
    ...{ tags: TEXT, ...DESCRIBED, externalDocs: TEXT, operationId: 'used', parameters: 'used', requestBody: 'used' },
    ...{ responses: 'used', callbacks: OTHERS, deprecated: TEXT, security: 'used', servers: 'used' },
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
    ...{ type: 'used', properties: 'used', required: 'used', items: 'used', prefixItems: 'used', allOf: 'used' },
    ...{
      oneOf: 'used',
      anyOf: 'used',
      enum: 'used',
      const: 'used',
      default: 'used',
      example: 'used',
      examples: 'used',
    },
    ...{ format: 'used', pattern: 'used', minLength: 'used', maxLength: 'used', minimum: 'used', maximum: 'used' },
    ...{ exclusiveMinimum: 'used', exclusiveMaximum: 'used', multipleOf: 'used', minItems: 'used', maxItems: 'used' },
    ...{ uniqueItems: 'used', minProperties: 'used', maxProperties: 'used', additionalProperties: 'used' },
    ...{ nullable: 'used', readOnly: 'used', writeOnly: 'used', discriminator: 'used', $defs: 'used' },
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
