import { AssertionError } from 'node:assert';
import type { IncomingHttpHeaders } from 'node:http';
import type * as AjvFormats from 'ajv-formats';
import type * as Ajv from 'ajv/dist/2020';
import type { ValidateFunction } from 'ajv/dist/2020';
import { isObject } from 'tillgate/internal';
import type { Reason, ReasonRow } from 'tillgate';
import { nodeAt, toFragment } from '../openapi/document';
import type { LocatedOperation } from '../openapi/document';
import { bearerChallenge } from '../matchers';

/** A request to the API under test. */
export interface ApiRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** A list is a header that is sent more than once. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | undefined;
}

/** A response of the API under test. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body, when it is JSON. */
  readonly body: unknown;
  /** Client port of the connection. */
  readonly localPort: number | undefined;
}

/** The media type of a Content-Type: without parameters, in lower case (RFC 9110 section 8.3.1). */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType === undefined ? 'none' : (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** Whether a media type is JSON (RFC 6839 section 3.1). */
export function isJson(mediaType: string): boolean {
  return /[/+]json$/.test(mediaType);
}

/** One way in which a response differs from what is required of it. */
export interface Mismatch {
  readonly what: string;
  readonly got: unknown;
  readonly expected: unknown;
  /** Worth a line in the report, and no failure unless the cases are strict. */
  readonly isNotice?: boolean;
}

/**
 * Fails a case that has found mismatches.
 *
 * @throws AssertionError (node:assert) that lists all of them
 */
export function assertNoMismatch(name: string, mismatches: readonly Mismatch[], exchange?: object): void {
  if (mismatches.length === 0) return;
  const pick = (side: 'got' | 'expected'): object => Object.fromEntries(mismatches.map((one) => [one.what, one[side]]));
  const lines = mismatches.map(describeMismatch);
  const error = new AssertionError({
    message: [name, ...lines].join('\n  '),
    actual: pick('got'),
    expected: pick('expected'),
    operator: 'equal',
  });
  // For reports: what was sent and received.
  throw Object.assign(error, { mismatches, exchange });
}

/** `status: expected 401, got 200` */
export function describeMismatch({ what, got, expected }: Mismatch): string {
  return `${what}: expected ${show(expected)}, got ${show(got)}`;
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
}

/** One way in which a request may be refused (RFC 6750 section 3). */
export interface ExpectedRefusal {
  readonly status: number;
  readonly error?: ReasonRow['error'];
  /** Accepted reasons. */
  readonly codes: readonly Reason[];
  /** Sets of scopes; the challenge names one of them. */
  readonly scopes?: readonly (readonly string[])[];
}

const HIDDEN_REASON = 'invalid_token';
const PROBLEM = 'application/problem+json';
/** What the refusals of any gate may be. */
const REFUSALS = [400, 401, 403];

/** What a refusal must be. */
export interface RefusalRules {
  /** Whether the API refuses as RFC 6750 says, with Tillgate's codes; `undefined` before its first refusal. */
  readonly isStrict: () => boolean | undefined;
  readonly compare: (
    response: ApiResponse,
    accepted: readonly ExpectedRefusal[],
    hasBody?: boolean,
  ) => readonly Mismatch[];
}

/**
 * Makes the rules for refused requests: status, challenge, problem body. A gate in production says only `invalid_token`
 * instead of the reason; all of its responses must agree on that, as `exposeReasons` says or as the first one does. A
 * server whose first refusal is no problem body with a `code` has another gate: any 400, 401 or 403 will do.
 */
export function refusalRules(options: {
  /** `undefined`: as the first refusal does. */
  readonly problems: boolean | undefined;
  readonly exposeReasons: boolean | undefined;
  readonly hides: boolean;
  /** Whether a gate of Tillgate was found in the app. */
  readonly hasGate: boolean;
}): RefusalRules {
  const { problems = true, hides } = options;
  let exposed = options.exposeReasons;
  let isStrict = options.problems !== undefined || options.hasGate ? true : undefined;

  function codesOf({ error, codes }: ExpectedRefusal, got: unknown): readonly unknown[] {
    if (error !== 'invalid_token') return codes;
    const isReason = codes.some((code) => code === got);
    if (exposed === undefined && (isReason || got === HIDDEN_REASON)) exposed = isReason;
    return exposed === false ? [HIDDEN_REASON] : codes;
  }

  function compareProblem({ status, headers, body }: ApiResponse, refusal: ExpectedRefusal): readonly Mismatch[] {
    const type = mediaTypeOf(headers['content-type']);
    if (type !== PROBLEM) return [{ what: 'content type', got: type, expected: PROBLEM }];
    const problem = isObject(body) ? body : {};
    const { code } = problem;
    return differing([
      { what: 'status in the body', got: problem['status'], expected: status },
      { what: 'code', got: code, expected: anyOf(codesOf(refusal, code), code) },
    ]);
  }

  function compare(response: ApiResponse, accepted: readonly ExpectedRefusal[], hasBody = true): readonly Mismatch[] {
    const { status, headers, body } = response;
    isStrict ??= mediaTypeOf(headers['content-type']) === PROBLEM && isObject(body) && typeof body['code'] === 'string';
    // RFC 9110 section 15.5.4: 404 hides that there is something.
    if (hides && status === 404) return [];
    const refusal = accepted.find((one) => one.status === status);
    if (!isStrict) return differing([{ what: 'status', got: status, expected: anyOf(REFUSALS, status) }]);
    if (!refusal) {
      const statuses = accepted.map((one) => one.status);
      return [{ what: 'status', got: status, expected: anyOf(statuses, status) }];
    }
    return [...compareChallenge(response, refusal), ...(problems && hasBody ? compareProblem(response, refusal) : [])];
  }

  return { isStrict: () => isStrict, compare };
}

function compareChallenge({ headers }: ApiResponse, { status, error, scopes }: ExpectedRefusal): readonly Mismatch[] {
  const header = headers['www-authenticate'];
  const challenge = header === undefined ? undefined : bearerChallenge(header);
  if (!challenge) return [{ what: 'challenge', got: header ?? 'none', expected: 'Bearer' }];
  const { error: got, scope } = challenge;
  const wrongError = differing([{ what: 'error of the challenge', got, expected: error }]);
  // A 401 may name the scopes to ask for (RFC 6750 section 3): which ones is up to the app.
  if (status === 401 || !scopes) return wrongError;
  // Of guards in a row each may name its own scopes.
  const named = scope?.split(' ').filter(Boolean) ?? [];
  const isSubset = named.length > 0 && named.every((one) => scopes.flat().includes(one));
  if (isSubset) return wrongError;
  const isNotice = named.length === 0;
  return [
    ...wrongError,
    { what: 'scope of the challenge', got: scope, expected: scopes[0]?.join(' '), ...(isNotice && { isNotice }) },
  ];
}

/** The received value when it is among the accepted ones, else all of those. */
function anyOf(accepted: readonly unknown[], got: unknown): unknown {
  if (accepted.includes(got)) return got;
  return accepted.length === 1 ? accepted[0] : accepted.join(' or ');
}

function differing(comparisons: readonly Mismatch[]): readonly Mismatch[] {
  return comparisons.filter(({ got, expected }) => got !== expected);
}

/** The documented responses of one operation. */
export interface DocumentedResponses {
  /** As the document writes them: `200`, `4XX`, `default`. */
  readonly statuses: readonly string[];
  /** The entry of `statuses` that applies to a status. */
  entryOf(status: number): string | undefined;
  /** How status, content type and body of a response differ from the document. */
  compare(response: ApiResponse): readonly Mismatch[];
}

/** What a response is that no entry of the document fits. */
export const UNDOCUMENTED = 'documented status';
const DOCUMENT = 'document';
const MAX_ERRORS = 3;

/** Reads the responses of a document; schemas are compiled when a response needs them. */
export function documentedResponses(
  document: object,
  basePath: string,
): (operation: LocatedOperation) => DocumentedResponses {
  let validatorOf: ReturnType<typeof schemaValidators> | undefined;

  function compareBody({ names, value }: ReturnType<typeof nodeAt>, { status, headers, body }: ApiResponse) {
    const types = isObject(value) ? Object.keys(value) : [];
    const what = `body of a ${status}`;
    // A response without `content` says nothing about its body.
    if (types.length === 0) return [];
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
        // What generators of documents leave out: refusals, redirects, 404 and 409.
        const isNotice = response.status < 200 || response.status >= 300;
        const expected = statuses.join(', ') || 'any';
        return [{ what: UNDOCUMENTED, got: response.status, expected, ...(isNotice && { isNotice }) }];
      }
      return method === 'HEAD' ? [] : compareBody(nodeAt(document, [...responses.names, entry, 'content']), response);
    }

    return { statuses, entryOf, compare };
  };
}

/** Compiles the schemas of a document on demand; a validator says what is wrong, `undefined` for a valid value. */
export function schemaValidators(
  document: object,
): (names: readonly string[]) => (value: unknown) => string | undefined {
  // Optional peers, loaded when the first body is compared with a schema.
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
