import type * as AjvFormats from 'ajv-formats';
import type * as Ajv from 'ajv/dist/2020';
import type { ValidateFunction } from 'ajv/dist/2020';
import { attempt, isObject } from 'tillgate/internal';
import { toFragment } from '../openapi/document';
import { readPattern } from './sampler';

/** Compares values with the schemas of one document, which are compiled on demand. */
export interface SchemaValidators {
  /** What is wrong with a value by the schema at a path of names; `undefined`: nothing, or the schema cannot be compiled. */
  problemOf(this: void, names: readonly string[], value: unknown): string | undefined;
  /** Whether a schema of the document allows a value. */
  isValid(this: void, schema: unknown, value: unknown): boolean;
}

const DOCUMENT = 'document';
const MAX_ERRORS = 3;
const known = new WeakMap<object, SchemaValidators>();

/** The validators of a document, by the dialect of its version. */
export function schemaValidators(document: object): SchemaValidators {
  const validators = known.get(document) ?? createValidators(document);
  known.set(document, validators);
  return validators;
}

function createValidators(document: object): SchemaValidators {
  // Loaded when the first value is compared with a schema.
  /* eslint-disable @typescript-eslint/no-require-imports */
  const { Ajv2020 } = require('ajv/dist/2020') as typeof Ajv;
  const { default: addFormats } = require('ajv-formats') as typeof AjvFormats;
  /* eslint-enable @typescript-eslint/no-require-imports */
  const regExp = Object.assign((pattern: string) => readPattern(pattern) ?? /^/, { code: 'readPattern' });
  const ajv = new Ajv2020({
    ...{ allErrors: true, strict: false, validateSchema: false, meta: false, logger: false, inlineRefs: false },
    ...{ addUsedSchema: false, code: { regExp } },
  });
  const isVersion30 = 'openapi' in document && String(document.openapi).startsWith('3.0.');
  addFormats(ajv);
  const dialect = (value: unknown): object => toJsonSchema(value, isVersion30) as object;
  ajv.addSchema(dialect(document), DOCUMENT);
  const compiled = new WeakMap<object, ValidateFunction>();

  function validatorOf(schema: unknown): ValidateFunction | undefined {
    if (!isObject(schema)) return undefined;
    const validate = compiled.get(schema) ?? attempt(() => ajv.compile(absolute(dialect(schema)) as object));
    if (validate) compiled.set(schema, validate);
    return validate;
  }

  return {
    problemOf(names, value) {
      const validate = attempt(() => ajv.getSchema(`${DOCUMENT}#${toFragment(names)}`));
      return !validate || validate(value) ? undefined : describeErrors(validate as ValidateFunction);
    },
    isValid: (schema, value) => validatorOf(schema)?.(value) !== false,
  };
}

/** References of a part of the document, as seen from outside of it. */
function absolute(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(absolute);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === '$ref' && typeof inner === 'string' && inner.startsWith('#') ? DOCUMENT + inner : absolute(inner),
    ]),
  );
}

function describeErrors({ errors }: ValidateFunction): string {
  const sentences = (errors ?? []).map(({ instancePath, message = 'is wrong', params }) => {
    const extra = isObject(params) ? params['additionalProperty'] : undefined;
    return `${instancePath || 'the body'} ${message}${typeof extra === 'string' ? `: ${extra}` : ''}`;
  });
  return [...new Set(sentences)].slice(0, MAX_ERRORS).join('; ');
}

/** Names under which a document has values, not schemas. */
const VALUES = new Set(['example', 'examples', 'default', 'enum', 'const', 'mapping']);

/** Names whose members are named by the author. */
const MAPS = new Set([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'schemas', 'parameters', 'responses', 'headers'],
  ...['requestBodies', 'content', 'paths', 'pathItems', 'callbacks', 'webhooks', 'dependentSchemas'],
]);

/**
 * What ajv takes for a schema: identifiers in it are names only where the dialect has them. In OpenAPI 3.0 exclusive
 * limits are flags, keywords beside a reference do not count, and `nullable` adds a type, also to `enum` and `allOf`.
 */
function toJsonSchema(value: unknown, isVersion30: boolean, isMap = false): unknown {
  if (Array.isArray(value)) return value.map((one) => toJsonSchema(one, isVersion30));
  if (!isObject(value)) return value;
  if (isVersion30 && !isMap && typeof value['$ref'] === 'string') return { $ref: value['$ref'] };
  const schema: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const isName = isMap || !VALUES.has(name);
    if (!isMap && /^(x-.*|example|examples|\$schema|\$id|id|nullable|discriminator)$/.test(name)) {
      if (name === 'x-files') schema[name] = toJsonSchema(member, isVersion30, true);
      continue;
    }
    const isNextMap = !isMap && MAPS.has(name);
    schema[name] = isName ? toJsonSchema(member, isVersion30, isNextMap) : member;
  }
  if (!isVersion30 || isMap) return schema;
  for (const limit of ['Minimum', 'Maximum']) {
    const flag = `exclusive${limit}`;
    if (schema[flag] === true) {
      schema[flag] = schema[limit.toLowerCase()];
      if (schema[flag] === undefined) delete schema[flag];
    } else if (schema[flag] === false) delete schema[flag];
  }
  if (value['nullable'] !== true) return schema;
  // ajv knows `nullable` beside `type` only.
  const isSimple = ['enum', 'allOf', 'oneOf', 'anyOf'].every((name) => schema[name] === undefined);
  return isSimple && 'type' in schema ? { ...schema, nullable: true } : { anyOf: [{ type: 'null' }, schema] };
}
