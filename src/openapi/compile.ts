import addFormats from 'ajv-formats';
import { _, Ajv2020 } from 'ajv/dist/2020';
import type { CodeKeywordDefinition, KeywordCxt, ValidateFunction } from 'ajv/dist/2020';
import names from 'ajv/dist/compile/names';
import { Type } from 'ajv/dist/compile/util';
import { operationsOf } from './document';
import type { ContractDocument, LocatedOperation } from './document';
import { toFragment } from './fragment';
import { pathMatcher } from './match-path';
import type { PathMatch } from './match-path';

/** What a request is held against. */
export interface CompiledOperation {
  /** Alternatives, each of which requires all of its scopes. */
  readonly security: readonly (readonly string[])[];
  readonly path: ValidateFunction;
  /** Turns the texts of the query into the types of the contract before it checks them. */
  readonly query: ValidateFunction;
  /** `undefined`: a body means nothing here. */
  readonly body: CompiledBody | undefined;
}

/** What a body is held against. */
export interface CompiledBody {
  readonly required: boolean;
  readonly mediaTypes: readonly string[];
  readonly validate: ValidateFunction;
}

/** The operations of one path, by method as requests have it. */
export type CompiledPath = ReadonlyMap<string, CompiledOperation>;

const DOCUMENT = 'contract';
const JSON_BODY = 'application/json';

/** Compiles every schema that requests are held against, once; answers the look-up by path. */
export function compileContract(document: ContractDocument): (path: string) => PathMatch<CompiledPath> | undefined {
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
    // The document is no JSON Schema as a whole, only in places.
    strict: false,
    // Takes a third of the start; a test holds every schema against the dialect instead.
    validateSchema: false,
    meta: false,
    // To generate less code, and to leave it as it is, takes a quarter less of the start.
    inlineRefs: false,
    code: { optimize: false },
  });
  return addFormats(boundErrors(ajv)).addSchema(document, DOCUMENT);
}

/** Errors after which the rest of an array or object is not validated. */
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
  const compiled = new Map<string, ValidateFunction>();
  return function compile(schema) {
    const text = JSON.stringify(schema);
    const validate = compiled.get(text) ?? ajv.compile(schema);
    compiled.set(text, validate);
    return validate;
  };
}

function compileBody(ajv: Ajv2020, { path, method, operation }: LocatedOperation): CompiledBody | undefined {
  const { requestBody } = operation;
  if (!requestBody) return undefined;
  const names = ['paths', path, method.toLowerCase(), 'requestBody', 'content', JSON_BODY, 'schema'];
  const validate = ajv.getSchema(`${DOCUMENT}#${toFragment(names)}`);
  if (!validate) throw new TypeError(`openapi.yaml: ${method} ${path} has a body, but no schema for ${JSON_BODY}`);
  return { required: requestBody.required ?? false, mediaTypes: Object.keys(requestBody.content), validate };
}

/** The parameters of one place as one object; whatever else stands in the query is a mistake, and silence would hide it. */
function parametersSchema({ parameters }: LocatedOperation, place: 'path' | 'query'): object {
  const here = parameters.filter((parameter) => parameter.in === place);
  return {
    type: 'object',
    additionalProperties: false,
    required: here.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(here.map(({ name, schema }) => [name, absolute(schema)])),
  };
}

/** A schema taken out of the document: its reference has to say where it leads from. */
function absolute(schema: object): object {
  return '$ref' in schema ? { ...schema, $ref: `${DOCUMENT}${String(schema.$ref)}` } : schema;
}
