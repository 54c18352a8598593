import addFormats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020';
import type { ValidateFunction } from 'ajv/dist/2020';
import { toFragment } from '../../openapi/fragment';
import { isRecord } from './reference';

/** Says what is wrong with a value, in one sentence; `undefined` when nothing is. */
export type Validate = (value: unknown) => string | undefined;

const DOCUMENT = 'document';
const MOST_ERRORS = 3;

/** Compiles the schemas of a document when they are asked for, by the names that lead to them. */
export function answerSchemas(document: object): (names: readonly string[]) => Validate {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateSchema: false, meta: false, logger: false });
  addFormats(ajv).addSchema(isOldDialect(document) ? modernize(document) : document, DOCUMENT);

  return function validatorOf(names) {
    const fragment = `${DOCUMENT}#${toFragment(names)}`;
    const validate = ajv.getSchema(fragment);
    if (!validate) throw new TypeError(`${fragment}: there is no schema`);
    return (value) => (validate(value) ? undefined : describeErrors(validate));
  };
}

function describeErrors({ errors }: ValidateFunction): string {
  const sentences = (errors ?? []).map(({ instancePath, message = 'is wrong', params }) => {
    const extra = isRecord(params) ? params['additionalProperty'] : undefined;
    return `${instancePath || 'the body'} ${message}${typeof extra === 'string' ? `: ${extra}` : ''}`;
  });
  return [...new Set(sentences)].slice(0, MOST_ERRORS).join('; ');
}

function isOldDialect(document: object): boolean {
  return 'openapi' in document && String(document.openapi).startsWith('3.0.');
}

/** OpenAPI 3.0 says with a flag what JSON Schema says with the number itself; `nullable` is known to ajv. */
function modernize<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(modernize) as Value;
  if (!isRecord(value)) return value;
  const modern: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(value)) modern[name] = modernize(one);
  for (const [limit, flag] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof modern[flag] !== 'boolean') continue;
    if (modern[flag]) modern[flag] = modern[limit];
    else delete modern[flag];
  }
  return modern as Value;
}
