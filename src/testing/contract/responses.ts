import { AssertionError } from 'node:assert';
import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from 'tillgate/internal';
import { REASONS } from 'tillgate';
import type { Reason, ReasonRow } from 'tillgate';
import { nodeAt } from '../openapi/document';
import type { LocatedOperation } from '../openapi/document';
import { bearerChallenge } from '../matchers';
import { schemaValidators } from './schemas';

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
  /** Why there is none: the server closed the connection. */
  readonly dropped?: string;
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
  /** About all refusals of the API: one line in the report, however many operations it concerns. */
  readonly isHabit?: boolean;
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
  throw Object.assign(error, { exchange });
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
export const REFUSALS: readonly number[] = [400, 401, 403];

/** What no refusal needs: a stack, also in JSON, a key, a query. */
const INTERNALS =
  /(?:\n|\\n)\s+at \S.*?:\d+:\d+|\bat \S+ \(\/\S+:\d+:\d+\)|Traceback \(most recent call last\)|-----BEGIN [A-Z ]+-----|"kty"\s*:|\/node_modules\/|\bSELECT\b[^"]+\bFROM\b/;

/** What a refusal says about how the API is made, or the token of its request. */
export function internalsIn(request: ApiRequest, { text, headers }: ApiResponse): string | undefined {
  const [internal] = INTERNALS.exec(`${text} ${JSON.stringify(headers)}`) ?? [];
  if (internal !== undefined) return internal.trim();
  const signature = String(request.headers['authorization'] ?? '').split('.')[2];
  if (!signature || request.target.includes(signature)) return undefined;
  return text.includes(signature) || JSON.stringify(headers).includes(signature) ? 'the token' : undefined;
}

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
 * instead of the reason; all of its responses must agree with the first one. A
 * server whose first refusal has none of Tillgate's codes has another gate: it may refuse with any 400, 401 or 403.
 */
export function refusalRules(options: {
  /** `undefined`: as the first refusal does. */
  readonly problems: boolean | undefined;
  readonly hides: boolean;
  /** Whether a gate of Tillgate was found in the app. */
  readonly hasGate: boolean;
}): RefusalRules {
  const { problems = true, hides } = options;
  let exposed: boolean | undefined;
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
    const { status, headers, body, dropped } = response;
    const statuses = accepted.map((one) => one.status);
    if (dropped !== undefined) {
      const expected = anyOf(statuses, status);
      return [{ what: 'status of a refusal', got: `none (${dropped})`, expected, isNotice: true, isHabit: true }];
    }
    isStrict ??= mediaTypeOf(headers['content-type']) === PROBLEM && isObject(body) && isOwnCode(body['code']);
    // RFC 9110 section 15.5.4: 404 hides that there is something.
    if (hides && status === 404) return [];
    const refusal = accepted.find((one) => one.status === status);
    if (!isStrict) return compareForeign(response, accepted);
    if (!refusal) return [{ what: 'status', got: status, expected: anyOf(statuses, status) }];
    return [...compareChallenge(response, refusal), ...(problems && hasBody ? compareProblem(response, refusal) : [])];
  }

  return { isStrict: () => isStrict, compare };
}

function isOwnCode(code: unknown): boolean {
  return code === HIDDEN_REASON || (typeof code === 'string' && Object.hasOwn(REASONS, code));
}

/** Another gate may have a vocabulary of its own; where it departs from RFC 6750 is a habit of the API, told once. */
function compareForeign({ status, headers }: ApiResponse, accepted: readonly ExpectedRefusal[]): readonly Mismatch[] {
  const statuses = accepted.map((one) => one.status);
  // A 400 is about the form of a request.
  const isOfForm = accepted.some((one) => one.status === 400 || one.codes.includes('malformed_token'));
  const challenge = headers['www-authenticate'] ?? 'none';
  const isChallenged = status !== 401 || challenge !== 'none';
  const habit = { isNotice: true, isHabit: true };
  return differing([
    { what: 'status', got: status, expected: anyOf(isOfForm ? REFUSALS : REFUSALS.slice(1), status) },
    { what: 'status of a refusal', got: status, expected: anyOf(statuses, status), ...habit },
    { what: 'challenge of a 401', got: challenge, expected: isChallenged ? challenge : 'Bearer', ...habit },
  ]);
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
  /** How status, content type and body of a response differ from the document. */
  compare(response: ApiResponse): readonly Mismatch[];
}

/** What a response is that no entry of the document fits. */
export const UNDOCUMENTED = 'documented status';

/** Reads the responses of a document; schemas are compiled when a response needs them. */
export function documentedResponses(
  document: object,
  basePath: string,
): (operation: LocatedOperation) => DocumentedResponses {
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
    const wrong = schemaValidators(document).problemOf([...media.names, 'schema'], body);
    return wrong === undefined ? [] : [{ what, got: wrong, expected: 'its schema' }];
  }

  return function responsesOf({ method, path }) {
    const responses = responsesNode(document, path.slice(basePath.length), method);
    const statuses = isObject(responses.value) ? Object.keys(responses.value) : [];

    function compare(response: ApiResponse): readonly Mismatch[] {
      if (response.dropped !== undefined) return [];
      const candidates = [String(response.status), `${String(response.status).slice(0, 1)}XX`, 'default'];
      const entry = candidates.find((one) => statuses.includes(one));
      if (entry === undefined) {
        // What generators of documents leave out: refusals, redirects, 404 and 409.
        const isNotice = response.status < 200 || response.status >= 300;
        const expected = statuses.join(', ') || 'any';
        return [{ what: UNDOCUMENTED, got: response.status, expected, ...(isNotice && { isNotice }) }];
      }
      return method === 'HEAD' ? [] : compareBody(nodeAt(document, [...responses.names, entry, 'content']), response);
    }

    return { statuses, compare };
  };
}

/** Whether a documented media type, or a range of them, includes another (RFC 9110 section 12.5.1). */
function matchesMediaType(documented: string, type: string): boolean {
  const range = mediaTypeOf(documented);
  return range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));
}

/** The responses of an operation; methods without a field of their own are in `additionalOperations` (OpenAPI 3.2). */
function responsesNode(document: object, path: string, method: string): ReturnType<typeof nodeAt> {
  const own = nodeAt(document, ['paths', path, method.toLowerCase(), 'responses']);
  if (own.value !== undefined) return own;
  return nodeAt(document, ['paths', path, 'additionalOperations', method, 'responses']);
}
