import type * as AjvFormats from 'ajv-formats';
import type * as Ajv from 'ajv/dist/2020';
import type { ValidateFunction } from 'ajv/dist/2020';
import { attempt, isObject } from 'tillgate/internal';
import { dereference, toFragment } from '../openapi/document';
import { readPattern } from './sample-texts';

/** Compares values with the schemas of one document, which are compiled on demand. */
export interface SchemaValidators {
  /** What is wrong in a response by the schema at a path of names; `undefined`: nothing, or the schema cannot be compiled. */
  problemOf(this: void, names: readonly string[], value: unknown): string | undefined;
  /** Whether a schema of the document allows a value in a request. */
  isValid(this: void, schema: unknown, value: unknown): boolean;
  /** What is wrong with it, with the keyword; `undefined`: nothing. */
  wrongIn(this: void, schema: unknown, value: unknown): string | undefined;
}

const DOCUMENT = 'document';
/** The document with what a request needs; a response needs other members. */
const REQUESTS = 'requests';
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
    allErrors: true,
    strict: false,
    validateSchema: false,
    meta: false,
    logger: false,
    inlineRefs: false,
    addUsedSchema: false,
    code: { regExp },
  });
  const isVersion30 = 'openapi' in document && String(document.openapi).startsWith('3.0.');
  addFormats(ajv);
  const responses = new JsonSchemas(document, isVersion30, 'writeOnly');
  const requests = new JsonSchemas(document, isVersion30, 'readOnly');
  ajv.addSchema(responses.of(document) as object, DOCUMENT);
  ajv.addSchema(requests.of(document) as object, REQUESTS);
  const compiled = new WeakMap<object, ValidateFunction>();

  function validatorOf(schema: unknown): ValidateFunction | undefined {
    if (!isObject(schema)) return undefined;
    const validate = compiled.get(schema) ?? attempt(() => ajv.compile(absolute(requests.of(schema)) as object));
    if (validate) compiled.set(schema, validate);
    return validate;
  }

  return {
    problemOf(names, value) {
      const validate = attempt(() => ajv.getSchema(`${DOCUMENT}#${toFragment(names)}`));
      return !validate || validate(value) ? undefined : describeErrors(validate as ValidateFunction);
    },
    isValid: (schema, value) => validatorOf(schema)?.(value) !== false,
    wrongIn(schema, value) {
      const validate = validatorOf(schema);
      if (!validate || validate(value)) return undefined;
      const keywords = [...new Set((validate.errors ?? []).map(({ keyword }) => keyword))].slice(0, MAX_ERRORS);
      return `${describeErrors(validate)} (${keywords.join(', ')})`;
    },
  };
}

/** References of a part of the document, as seen from outside of it. */
function absolute(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(absolute);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === '$ref' && typeof inner === 'string' && inner.startsWith('#') ? REQUESTS + inner : absolute(inner),
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
 * A request must not have what is `readOnly`, a response not what is `writeOnly`, also where it is in `required`
 * (OpenAPI 3.0.3 section 4.7.24.2).
 */
class JsonSchemas {
  readonly #document: object;
  readonly #isVersion30: boolean;
  readonly #absent: 'readOnly' | 'writeOnly';

  constructor(document: object, isVersion30: boolean, absent: 'readOnly' | 'writeOnly') {
    this.#document = document;
    this.#isVersion30 = isVersion30;
    this.#absent = absent;
  }

  /** @param optional - members that an enclosing `allOf` has marked */
  of(value: unknown, isMap = false, optional: readonly string[] = []): unknown {
    if (Array.isArray(value)) return value.map((one) => this.of(one));
    if (!isObject(value)) return value;
    if (this.#isVersion30 && !isMap && typeof value['$ref'] === 'string') return { $ref: value['$ref'] };
    const absent = isMap ? [] : [...optional, ...this.#marked(value)];
    const schema: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(value)) {
      if (!isMap && /^(x-.*|example|examples|\$schema|\$id|id|nullable|discriminator)$/.test(name)) {
        if (name === 'x-files') schema[name] = this.of(member, true);
      } else if (absent.length > 0 && name === 'required' && Array.isArray(member)) {
        schema[name] = member.filter((one) => !absent.includes(String(one)));
      } else if (absent.length > 0 && name === 'allOf' && Array.isArray(member)) {
        schema[name] = member.map((one) => this.of(this.#requires(one, absent), false, absent));
      } else {
        const isName = isMap || !VALUES.has(name);
        schema[name] = isName ? this.of(member, !isMap && MAPS.has(name)) : member;
      }
    }
    return this.#isVersion30 && !isMap ? fromVersion30(schema, value) : schema;
  }

  /** A branch in place of the reference to it, where it requires one of these members. */
  #requires(branch: unknown, absent: readonly string[]): unknown {
    const target = attempt(() => dereference(this.#document, branch));
    const { required } = isObject(target) ? target : {};
    return Array.isArray(required) && required.some((name) => absent.includes(String(name))) ? target : branch;
  }

  #marked(schema: Readonly<Record<string, unknown>>, depth = 0): readonly string[] {
    const { properties, allOf } = schema;
    const own = Object.entries(isObject(properties) ? properties : {}).filter(([, one]) => {
      const property = attempt(() => dereference(this.#document, one));
      return isObject(property) && property[this.#absent] === true;
    });
    const branches = Array.isArray(allOf) && depth < MAX_DEPTH ? allOf : [];
    const others = branches.flatMap((one) => {
      const branch = attempt(() => dereference(this.#document, one));
      return isObject(branch) ? this.#marked(branch, depth + 1) : [];
    });
    return [...own.map(([name]) => name), ...others];
  }
}

/** Deeper branches of `allOf` mark nothing. */
const MAX_DEPTH = 8;

function fromVersion30(
  schema: Record<string, unknown>,
  { nullable }: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  for (const limit of ['Minimum', 'Maximum']) {
    const flag = `exclusive${limit}`;
    if (schema[flag] === true) {
      schema[flag] = schema[limit.toLowerCase()];
      if (schema[flag] === undefined) delete schema[flag];
    } else if (schema[flag] === false) delete schema[flag];
  }
  if (nullable !== true) return schema;
  // ajv knows `nullable` beside `type` only.
  const isSimple = ['enum', 'allOf', 'oneOf', 'anyOf'].every((name) => schema[name] === undefined);
  return isSimple && 'type' in schema ? { ...schema, nullable: true } : { anyOf: [{ type: 'null' }, schema] };
}
