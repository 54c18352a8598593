import type * as AjvFormats from 'ajv-formats';
import type * as Ajv from 'ajv/dist/2020';
import type { ValidateFunction } from 'ajv/dist/2020';
import { isObject } from '../../core/objects';
import { requirePackages } from '../../core/required-packages';
import { toFragment } from '../../openapi/document';
import type { LocatedOperation } from '../../openapi/document';
import { isJson, mediaTypeOf } from './http-client';
import type { ApiResponse } from './http-client';
import type { Mismatch } from './mismatch';
import { nodeAt } from './references';
import type { DocumentNode } from './references';

/** The documented responses of one operation. */
export interface DocumentedResponses {
  /** As the document writes them: `200`, `4XX`, `default`. */
  readonly statuses: readonly string[];
  /** The entry of `statuses` that applies to a status. */
  entryOf(status: number): string | undefined;
  /** How status, content type and body of a response differ from the document. */
  compare(response: ApiResponse): readonly Mismatch[];
}

const DOCUMENT = 'document';
const MAX_ERRORS = 3;

/** Reads the responses of a document; schemas are compiled when a response needs them. */
export function documentedResponses(
  document: object,
  basePath: string,
): (operation: LocatedOperation) => DocumentedResponses {
  let validatorOf: ReturnType<typeof schemaValidators> | undefined;

  function compareBody({ names, value }: DocumentNode, { status, headers, text, body }: ApiResponse) {
    const types = isObject(value) ? Object.keys(value) : [];
    const what = `body of a ${status}`;
    if (types.length === 0) return text === '' ? [] : [{ what, got: 'a body', expected: 'no body' }];
    const got = mediaTypeOf(headers['content-type']);
    const type = types.find((one) => matchesMediaType(one, got));
    if (type === undefined) return [{ what: 'documented content type', got, expected: types.join(', ') }];
    if (body === undefined) return isJson(got) ? [{ what: 'body', got: 'invalid JSON', expected: 'JSON' }] : [];
    const media = nodeAt(document, [...names, type]);
    if (!isObject(media.value) || !('schema' in media.value)) return [];
    validatorOf ??= schemaValidators(document);
    const wrong = validatorOf([...media.names, 'schema'])(body);
    return wrong === undefined ? [] : [{ what, got: wrong, expected: 'its schema' }];
  }

  return function responsesOf({ method, path }) {
    const responses = nodeAt(document, ['paths', path.slice(basePath.length), method.toLowerCase(), 'responses']);
    const statuses = isObject(responses.value) ? Object.keys(responses.value) : [];

    function entryOf(status: number): string | undefined {
      const candidates = [String(status), `${String(status).slice(0, 1)}XX`, 'default'];
      return candidates.find((entry) => statuses.includes(entry));
    }

    function compare(response: ApiResponse): readonly Mismatch[] {
      const entry = entryOf(response.status);
      if (entry === undefined) {
        return [{ what: 'documented status', got: response.status, expected: statuses.join(', ') }];
      }
      return method === 'HEAD' ? [] : compareBody(nodeAt(document, [...responses.names, entry, 'content']), response);
    }

    return { statuses, entryOf, compare };
  };
}

/**
 * Compiles the schemas of a document on demand, by the path of names that leads to them. A validator describes what is
 * wrong with a value; `undefined` when it is valid.
 */
export function schemaValidators(
  document: object,
): (names: readonly string[]) => (value: unknown) => string | undefined {
  // Optional peers, loaded when the first body is compared with a schema.
  requirePackages('contractCases()', ['ajv', 'ajv-formats']);
  /* eslint-disable @typescript-eslint/no-require-imports */
  const { Ajv2020 } = require('ajv/dist/2020') as typeof Ajv;
  const { default: addFormats } = require('ajv-formats') as typeof AjvFormats;
  /* eslint-enable @typescript-eslint/no-require-imports */
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateSchema: false, meta: false, logger: false });
  const isVersion30 = 'openapi' in document && String(document.openapi).startsWith('3.0.');
  addFormats(ajv).addSchema(isVersion30 ? toJsonSchema2020(document) : document, DOCUMENT);

  return function validatorOf(names) {
    const fragment = `${DOCUMENT}#${toFragment(names)}`;
    const validate = ajv.getSchema(fragment);
    if (!validate) throw new TypeError(`${fragment}: there is no schema`);
    return (value) => (validate(value) ? undefined : describeErrors(validate));
  };
}

/** Whether a documented media type, or a range of them, includes another (RFC 9110 section 12.5.1). */
function matchesMediaType(documented: string, type: string): boolean {
  const range = mediaTypeOf(documented);
  return range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));
}

function describeErrors({ errors }: ValidateFunction): string {
  const sentences = (errors ?? []).map(({ instancePath, message = 'is wrong', params }) => {
    const extra = isObject(params) ? params['additionalProperty'] : undefined;
    return `${instancePath || 'the body'} ${message}${typeof extra === 'string' ? `: ${extra}` : ''}`;
  });
  return [...new Set(sentences)].slice(0, MAX_ERRORS).join('; ');
}

/** In OpenAPI 3.0 exclusive limits are flags, in JSON Schema numbers; ajv knows `nullable`. */
function toJsonSchema2020<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(toJsonSchema2020) as Value;
  if (!isObject(value)) return value;
  const schema: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) schema[name] = toJsonSchema2020(member);
  for (const limit of ['Minimum', 'Maximum']) {
    const flag = `exclusive${limit}`;
    if (schema[flag] === true) schema[flag] = schema[limit.toLowerCase()];
    else if (schema[flag] === false) delete schema[flag];
  }
  return schema as Value;
}
