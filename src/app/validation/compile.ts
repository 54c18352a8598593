import addFormats from 'ajv-formats';
import { _, Ajv2020 } from 'ajv/dist/2020';
import type { CodeKeywordDefinition, KeywordCxt, ValidateFunction } from 'ajv/dist/2020';
import names from 'ajv/dist/compile/names';
import { Type } from 'ajv/dist/compile/util';
import { operationsOf, toFragment } from '../../openapi/document';
import type { ContractDocument, LocatedOperation } from '../../openapi/document';
import { pathMatcher } from './match-path';
import type { PathMatch } from './match-path';

/** The validators of one operation. */
export interface CompiledOperation {
  /** Alternatives, each of which requires all of its scopes. */
  readonly security: readonly (readonly string[])[];
  readonly path: ValidateFunction;
  /** Coerces the texts of the query to the types of the contract first. */
  readonly query: ValidateFunction;
  /** `undefined`: a body is ignored. */
  readonly body: CompiledBody | undefined;
}

/** The validator of a body. */
export interface CompiledBody {
  readonly required: boolean;
  readonly mediaTypes: readonly string[];
  readonly validate: ValidateFunction;
}

/** The operations of one path, by method in upper case. */
export type CompiledPath = ReadonlyMap<string, CompiledOperation>;

const DOCUMENT = 'contract';
const JSON_BODY = 'application/json';

/** Finds the operations of a path. */
type FindPath = (path: string) => PathMatch<CompiledPath> | undefined;

const compiled = new WeakMap<ContractDocument, FindPath>();

/** Compiles the schemas of all requests, once per document; returns the look-up by path. */
export function compileContract(document: ContractDocument): FindPath {
  const find = compiled.get(document) ?? compilePaths(document);
  compiled.set(document, find);
  return find;
}

function compilePaths(document: ContractDocument): FindPath {
  const bodies = schemasOf(document, { coerceTypes: false });
  const parameters = memoize(schemasOf(document, { coerceTypes: true }));
  const paths = new Map<string, Map<string, CompiledOperation>>();
  for (const at of operationsOf(document)) {
    const operations = paths.get(at.path) ?? new Map<string, CompiledOperation>();
    paths.set(at.path, operations);
    operations.set(at.method, {
      security: at.security,
      path: parameters(parametersSchema(at, 'path')),
      query: parameters(parametersSchema(at, 'query')),
      body: compileBody(bodies, at),
    });
  }
  return pathMatcher(paths);
}

/** The schemas of the document, ready to be compiled. */
function schemasOf(document: ContractDocument, { coerceTypes }: { readonly coerceTypes: boolean }): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    coerceTypes,
    // An OpenAPI document is not a JSON Schema as a whole.
    strict: false,
    // Saves a third of the start; a test validates every schema instead.
    validateSchema: false,
    meta: false,
    // Saves a quarter of the start.
    inlineRefs: false,
    code: { optimize: false },
  });
  return addFormats(boundErrors(ajv)).addSchema(document, DOCUMENT);
}

/** Errors that are reported at most, and after which the rest of an array or object is not validated. */
export const MAX_ERRORS = 20;

/**
 * Gives up an array or object after {@link MAX_ERRORS} errors. With `allErrors` alone, Ajv copies the errors found so
 * far for every wrong item: an array of 33,000 of them, which fits into 100 kB, takes 11 s.
 */
function boundErrors(ajv: Ajv2020): Ajv2020 {
  const stopIfFull = ({ gen }: KeywordCxt): unknown => {
    return gen.if(_`${names.errors} >= ${MAX_ERRORS}`, () => gen.break());
  };
  const items: CodeKeywordDefinition = {
    keyword: 'items',
    type: 'array',
    schemaType: ['object', 'boolean'],
    code(cxt) {
      const { gen, data } = cxt;
      const isValid = gen.name('valid');
      const areValid = gen.let('valid', true);
      gen.forRange('i', 0, gen.const('len', _`${data}.length`), (index) => {
        cxt.subschema({ keyword: 'items', dataProp: index, dataPropType: Type.Num }, isValid);
        gen.if(_`!${isValid}`, () => {
          gen.assign(areValid, false);
          stopIfFull(cxt);
        });
      });
      cxt.ok(areValid);
    },
  };
  const unbounded = ajv.getKeyword('additionalProperties') as CodeKeywordDefinition;
  const additionalProperties: CodeKeywordDefinition = {
    ...unbounded,
    code(cxt) {
      const report = cxt.error.bind(cxt);
      cxt.error = (...details) => {
        report(...details);
        stopIfFull(cxt);
      };
      unbounded.code(cxt);
    },
  };
  ajv.removeKeyword('items').removeKeyword('additionalProperties');
  return ajv.addKeyword(items).addKeyword(additionalProperties);
}

/** Compiles equal schemas once: most operations have the same parameters. */
function memoize(ajv: Ajv2020): (schema: object) => ValidateFunction {
  const validators = new Map<string, ValidateFunction>();
  return function compile(schema) {
    const text = JSON.stringify(schema);
    const validate = validators.get(text) ?? ajv.compile(schema);
    validators.set(text, validate);
    return validate;
  };
}

function compileBody(ajv: Ajv2020, { path, method, operation }: LocatedOperation): CompiledBody | undefined {
  const { requestBody } = operation;
  if (!requestBody) return undefined;
  const names = ['paths', path, method.toLowerCase(), 'requestBody', 'content', JSON_BODY, 'schema'];
  const validate = ajv.getSchema(`${DOCUMENT}#${toFragment(names)}`);
  if (!validate) throw new TypeError(`openapi.yaml: ${method} ${path} has a body without a schema for ${JSON_BODY}`);
  return { required: requestBody.required ?? false, mediaTypes: Object.keys(requestBody.content), validate };
}

/** The parameters of one place as one object; unknown ones are errors. */
function parametersSchema({ parameters }: LocatedOperation, place: 'path' | 'query'): object {
  const here = parameters.filter((parameter) => parameter.in === place);
  return {
    type: 'object',
    additionalProperties: false,
    required: here.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(here.map(({ name, schema }) => [name, absolute(schema)])),
  };
}

/** A schema outside of the document: its reference needs the name of the document. */
function absolute(schema: object): object {
  return '$ref' in schema ? { ...schema, $ref: `${DOCUMENT}${String(schema.$ref)}` } : schema;
}
