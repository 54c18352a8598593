import type { Client, ClientOptions, IssuedToken } from './types';

export type { Client, ClientOptions, IssuedToken };

/** A token request takes at most this long, its response read whole. */
const TOKEN_REQUEST_MS = 10_000;
/** Lifetime of a token whose response has no `expires_in`. */
const DEFAULT_LIFETIME_MS = 60_000;
/** A token is renewed at most this long before it expires. */
const MAX_MARGIN_MS = 60_000;
/** Rest after a failed token request without Retry-After. */
const FAILURE_REST_MS = 1_000;
/** Longest Retry-After of the token endpoint that is believed. */
const MAX_REST_MS = 60_000;
/**
 * Age at which a token that replaced a refused one, and is refused itself, is replaced: where the time of issue is compared,
 * tokens of the second of a change die too.
 */
const REPLACEMENT_AGE_MS = 1_000;
/** Age until which the second of two tokens that were never accepted is kept (a wrong audience is 401 too). */
const HOPELESS_MS = 30_000;
/** Longest Retry-After of the API that a call waits for. */
const MAX_WAIT_MS = 30_000;
/** Times that a call is sent until its token is accepted. */
const MAX_SENDS = 3;

/** `code` in the problem bodies of a gate for 401 `invalid_token`, where a page cannot read WWW-Authenticate. */
const INVALID_TOKEN_CODES: readonly unknown[] =
  `invalid_token malformed_token algorithm_not_allowed wrong_type unknown_key unsupported_critical_header unusable_key
  bad_signature invalid_claims wrong_issuer wrong_audience expired not_yet_valid lifetime_too_long sender_constrained
  binding_required wrong_binding generation_missing generation_invalid superseded inactive`.split(/\s+/);

/**
 * The token endpoint gave no token. All calls that waited for it get the same error. It has no `cause`, because the error
 * of a `fetch` may hold the request, and with it the secret. Recognise it by its `name`: an app that loads this package by
 * `import` and by `require` has two classes.
 */
export class TokenRequestError extends Error {
  /** `error` of the response (RFC 6749 section 5.2), for example `invalid_client`. */
  declare readonly error?: string | undefined;
  /** `error_description` of the response. */
  declare readonly description?: string | undefined;
  /** Status of the response, if there was one. */
  declare readonly status?: number | undefined;
  /**
   * Why no response could be used: a code of the network such as `ECONNREFUSED`, `ETIMEDOUT` after 10 s, `ERR_REDIRECT`
   * (token requests follow none), `ERR_RESPONSE` (no bearer token in it), `ERR_NETWORK` (no code is known).
   */
  declare readonly code?: string | undefined;
  /** `Retry-After` of the response, in ms. */
  declare readonly retryAfterMs?: number | undefined;

  constructor(known: Pick<TokenRequestError, 'error' | 'description' | 'status' | 'code' | 'retryAfterMs'>) {
    const { status, error, code, description } = known;
    const said = [status, error ?? code, description && `(${description})`].filter(Boolean).join(' ');
    super(`The token endpoint gave no token: ${said}`);
    Object.assign(this, { name: 'TokenRequestError', ...known });
  }
}

/**
 * Makes the caller of one API: it requests a token by the client credentials grant (RFC 6749 section 4.4), keeps it for all
 * calls, renews it before it expires, and replaces it when the API refuses it as invalid (RFC 6750 section 3.1).
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { createClient } from '@tillgate/client';
 *
 * const client = createClient({
 *   tokenUrl: 'https://login.example.com/connect/token',
 *   clientId: 'till-1',
 *   clientSecret: process.env['CLIENT_SECRET'] ?? '',
 *   scope: 'orders:read',
 *   baseUrl: 'https://api.example.com/v1',
 * });
 *
 * export const listOrders = async () => (await client.fetch('/orders')).json();
 * ```
 */
export function createClient(options: ClientOptions): Client {
  const settings = readOptions(options);
  const tokens = new Tokens(settings);

  async function fetchWithToken(input: Parameters<Client['fetch']>[0], init: RequestInit = {}): Promise<Response> {
    const call = readCall(settings.api, input, init);
    return call.isBelowBase ? send(call, tokens, settings) : settings.fetch(call.target, init);
  }
  return { fetch: fetchWithToken, token: () => tokens.current() };
}

/** Reads what `fetch()` was called with. */
function readCall(baseUrl: URL, input: Parameters<Client['fetch']>[0], init: RequestInit) {
  const request = typeof input === 'object' && 'url' in input ? input : undefined;
  const url = resolveUrl(request?.url ?? `${input as string}`, baseUrl);
  const headers = new Headers(init.headers ?? request?.headers);
  if (headers.has('authorization')) throw new TypeError('fetch(): the Authorization header is set by the client alone');
  const { body = null, method = request?.method ?? 'GET', signal = request?.signal } = init;
  return {
    target: request ?? url.href,
    init: { ...init, headers },
    signal: signal ?? undefined,
    isBelowBase: url.origin === baseUrl.origin && `${url.pathname}/`.startsWith(baseUrl.pathname),
    // Asked after the call was sent: where Request has no `body`, `bodyUsed` says then whether it had one.
    isRepeatable: () => (body === null ? !request?.body && !request?.bodyUsed : canBeSentAgain(body)),
    // Methods without effects (RFC 9110 section 9.2.1) may be sent again after a 503 or 429.
    isSafe: /^(GET|HEAD|OPTIONS)$/i.test(method),
  };
}

/** A relative URL is one below `baseUrl`, also if it begins with a slash, or with the path of `baseUrl` itself. */
function resolveUrl(text: string, baseUrl: URL): URL {
  if (URL.canParse(text)) return new URL(text);
  const path = `/${text.replace(/^[\s/\\]+/, '')}`;
  return new URL(path.startsWith(baseUrl.pathname) ? path : `.${path}`, baseUrl);
}

/** Streams, iterables and the body of a `Request` are gone once they are sent. The name of a class holds in every realm. */
function canBeSentAgain(body: object | string): boolean {
  const name = Object.prototype.toString.call(body).slice(8, -1);
  return ArrayBuffer.isView(body) || /^(String|URLSearchParams|FormData|Blob|File|(Shared)?ArrayBuffer)$/.test(name);
}

/** Sends a call until its token is accepted, and once more after a Retry-After. */
async function send(call: ReturnType<typeof readCall>, tokens: Tokens, { fetch, sleep }: Settings): Promise<Response> {
  const { target, init, signal } = call;
  signal?.throwIfAborted();
  let token = await untilAborted(tokens.current(), signal);
  let mayWait = call.isSafe;
  for (let sends = 1; ;) {
    init.headers.set('authorization', `Bearer ${token.accessToken}`);
    const response = await fetch(target, init);
    const { status } = response;
    if (status !== 401 && status !== 429 && status < 500) tokens.accepted.add(token);
    // The target of a redirect may be somebody else, who asks for one token after another.
    const isRefused = status === 401 && !response.redirected && (await isInvalidToken(response));
    const next = isRefused && sends < MAX_SENDS ? tokens.replace(token) : undefined;
    next?.catch(() => undefined);
    const isBusy = mayWait && (status === 429 || status === 503);
    const waitMs = (isBusy ? retryAfterOf(response) : undefined) ?? Infinity;
    if (!call.isRepeatable() || (!next && waitMs > MAX_WAIT_MS)) return response;
    response.body?.cancel().catch(() => undefined);
    if (next) sends += 1;
    else await untilAborted(sleep(waitMs, signal), signal);
    mayWait &&= next !== undefined;
    // The wait may have been longer than the token lives.
    token = await untilAborted(next ?? tokens.current(), signal);
  }
}

/** A token with what decides when it is replaced. */
interface Held {
  readonly token: IssuedToken;
  /** From when on it is renewed; always, once another token is to take its place. */
  renewAtMs: number;
  readonly receivedAtMs: number;
  /** The token before it, if the API refused that one. */
  readonly replaced: IssuedToken | undefined;
  isRefused: boolean;
}

/** The tokens of one client. A token is known by its object, not by its text: the response that it came in. */
class Tokens {
  /** Tokens that got a response which no refused token gets. */
  readonly accepted = new WeakSet<IssuedToken>();
  readonly #settings: Settings;
  #held: Held | undefined;
  /** The token that is on its way, for all that wait or come. */
  #next: Promise<IssuedToken> | undefined;
  #failure: { readonly error: TokenRequestError; readonly untilMs: number } | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /**
   * The token to send. One that is about to expire is renewed first; while that fails, it serves until it has expired.
   *
   * @param waitMs - to wait before the token request, if one is to be made
   */
  current(waitMs = 0): Promise<IssuedToken> {
    const held = this.#held;
    if (held && this.#settings.clock() < held.renewAtMs) return Promise.resolve(held.token);
    return (this.#next ??= this.#obtain(waitMs).finally(() => (this.#next = undefined)));
  }

  /** The token to send instead of a refused one; `undefined` while no other one is to be requested. */
  replace(refused: IssuedToken): Promise<IssuedToken> | undefined {
    const held = this.#held;
    if (held?.token === refused) held.isRefused = true;
    if (this.#next || held?.token !== refused) return this.current();
    const ageMs = this.#settings.clock() - held.receivedAtMs;
    const isSecond = held.replaced !== undefined && !this.accepted.has(refused);
    const isHopeless = isSecond && !this.accepted.has(held.replaced);
    if (isHopeless && ageMs < HOPELESS_MS) return undefined;
    held.renewAtMs = -Infinity;
    return this.current(isSecond ? REPLACEMENT_AGE_MS - ageMs : 0);
  }

  async #obtain(waitMs: number): Promise<IssuedToken> {
    const { clock, sleep } = this.#settings;
    if (waitMs > 0) await sleep(waitMs);
    const held = this.#held;
    const requestedAtMs = clock();
    try {
      if (this.#failure && requestedAtMs < this.#failure.untilMs) throw this.#failure.error;
      const token = await requestToken(this.#settings, requestedAtMs);
      const renewAtMs = token.expiresAtMs - Math.min((token.expiresAtMs - requestedAtMs) / 10, MAX_MARGIN_MS);
      const replaced = held?.isRefused ? held.token : undefined;
      this.#held = { token, renewAtMs, receivedAtMs: clock(), replaced, isRefused: false };
      return token;
    } catch (error) {
      const failure = error as TokenRequestError;
      const restMs = Math.min(failure.retryAfterMs ?? FAILURE_REST_MS, MAX_REST_MS);
      if (failure !== this.#failure?.error) this.#failure = { error: failure, untilMs: clock() + restMs };
      if (held && !held.isRefused && clock() < held.token.expiresAtMs) return held.token;
      throw failure;
    }
  }
}

/** Requests a token (RFC 6749 section 4.4.2). */
async function requestToken(settings: Settings, requestedAtMs: number): Promise<IssuedToken> {
  const { response, body } = await sendTokenRequest(settings);
  const { access_token: accessToken, token_type: type = 'Bearer', expires_in: expiresIn, scope } = body;
  if (response.ok && isText(accessToken, /^[!-~]+$/) && String(type).toLowerCase() === 'bearer') {
    const expiresAtMs = requestedAtMs + (Number(expiresIn) > 0 ? Number(expiresIn) * 1_000 : DEFAULT_LIFETIME_MS);
    return { accessToken, expiresAtMs, scope: isText(scope) ? scope : undefined, response: body };
  }
  const [error, description] = [body['error'], body['error_description']].map((text) => quoted(text, settings));
  // A redirect is the one response that is neither a success nor an error; a page does not see its status.
  const why = error ? { error } : { code: response.ok || response.status >= 400 ? 'ERR_RESPONSE' : 'ERR_REDIRECT' };
  throw new TokenRequestError({ ...why, description, status: response.status, retryAfterMs: retryAfterOf(response) });
}

async function sendTokenRequest({ fetch, tokenUrl, headers, form }: Settings) {
  const timeout = new AbortController();
  const { signal } = timeout;
  const timer = setTimeout(() => timeout.abort(new TokenRequestError({ code: 'ETIMEDOUT' })), TOKEN_REQUEST_MS);
  try {
    const request = { method: 'POST', headers, body: new URLSearchParams(form), redirect: 'manual', signal } as const;
    const response = await untilAborted(fetch(tokenUrl, request), signal);
    return { response, body: await untilAborted(readObject(response), signal) };
  } catch (error) {
    // Only the code: the message of a `fetch` of others may hold the request.
    const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
    const known = [cause?.code, code].find((each): each is string => isText(each, /^[A-Z_0-9]{1,40}$/));
    throw new TokenRequestError({ code: known ?? 'ERR_NETWORK' });
  } finally {
    clearTimeout(timer);
  }
}

async function readObject(response: Response): Promise<Readonly<Record<string, unknown>>> {
  return { ...((await response.json().catch(() => undefined)) as object | undefined) };
}

/** What the server says, within RFC 6749 section 5.2: it may repeat the request, and with it the secret. */
function quoted(value: unknown, { clientSecret, basic }: Settings): string | undefined {
  const forms = [clientSecret, formEncoded(clientSecret), encodeURIComponent(clientSecret), basic];
  return isText(value, /^[ -~]{1,300}$/) && !forms.some((form) => value.includes(form)) ? value : undefined;
}

/** As RFC 6749 section 2.3.1 wants id and secret inside Basic; most libraries leave it out, and `+`, `%`, `:` fail. */
const formEncoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);

const isText = (value: unknown, form = /./): value is string => typeof value === 'string' && form.test(value);

/** Whether a 401 says `error="invalid_token"` (RFC 6750 section 3.1), in any of its challenges. */
async function isInvalidToken(response: Response): Promise<boolean> {
  const header = response.headers.get('www-authenticate');
  if (header === null) {
    const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json');
    return isProblem === true && INVALID_TOKEN_CODES.includes((await readObject(response.clone()))['code']);
  }
  // Each parameter with its value, so that nothing inside a quoted string counts. A name begins where no other goes on.
  const parameters = header.matchAll(/(?<![\w!#$%&'*+.^`|~-])([\w-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g);
  const errors = [...parameters].filter(([, name]) => name?.toLowerCase() === 'error');
  return errors.some(([, , text, word]) => (text ?? word) === 'invalid_token');
}

/** `Retry-After` (RFC 9110 section 10.2.3) in ms: seconds, or a date, which is compared with that of the response. */
function retryAfterOf({ headers }: { readonly headers: Headers }): number | undefined {
  const value = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const waitMs = Date.parse(/^[a-z]/i.test(value) ? value : '') - (Date.parse(headers.get('date') ?? '') || Date.now());
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs);
}

/** Waits for `work` until the signal aborts. The work goes on for others, and its failure is handled. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

type Settings = ReturnType<typeof readOptions>;

/** Errors quote no value: it may be a secret in the wrong place. */
function readOptions(options: ClientOptions) {
  const { tokenUrl, baseUrl, clientId, clientSecret, scope, auth = 'basic', parameters, ...functions } = options;
  const { fetch = fetchOfRuntime, clock = () => performance.now(), sleep = sleepUntilAborted, ...unknown } = functions;
  const wrong = [
    ...Object.keys(unknown).map((name) => `unknown option ${name}`),
    ...Object.entries({ tokenUrl, baseUrl }).map(([name, url]) => !isHttpUrl(String(url)) && `${name} ${URL_EXPECTED}`),
    !(isText(clientId) && isText(clientSecret)) && 'clientId and clientSecret must be texts that are not empty',
    !isText(scope ?? 'none') && 'scope must be a text that is not empty',
    Object.values({ ...parameters }).some((each) => typeof each !== 'string') && 'parameters must be texts by name',
    !['basic', 'post'].includes(auth) && "auth must be 'basic' or 'post'",
    [fetch, clock, sleep].some((each) => typeof each !== 'function') && 'fetch, clock and sleep must be functions',
  ].find((each) => each !== false);
  if (wrong !== undefined) throw new TypeError(`createClient(): ${wrong}`);
  const basic = btoa(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`);
  const headers = { Accept: 'application/json', ...(auth === 'basic' && { Authorization: `Basic ${basic}` }) };
  const credential = auth === 'post' && { client_id: clientId, client_secret: clientSecret };
  const grant = { grant_type: 'client_credentials', ...(scope !== undefined && { scope }) };
  const form = { ...parameters, ...grant, ...credential };
  // Its path ends in a slash, so that `/v1x` is not below `/v1`.
  const api = new URL(new URL(baseUrl).href.replace(/\/?(\?.*)?$/, '/'));
  return { tokenUrl: String(tokenUrl), headers, form, clientSecret, basic, api, fetch, clock, sleep };
}

const isHttpUrl = (url: string): boolean => URL.canParse(url) && /^https?:\/\/[^/@#?]+([/?][^#]*)?$/i.test(url);
const URL_EXPECTED = 'must be an http: or https: URL without user and fragment';
const fetchOfRuntime: Client['fetch'] = (input, init) => globalThis.fetch(input, init);

function sleepUntilAborted(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const wait = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  return untilAborted(wait, signal).finally(() => clearTimeout(timer));
}
