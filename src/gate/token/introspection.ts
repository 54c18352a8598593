import { hash, randomUUID } from 'node:crypto';
import * as timers from 'node:timers';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/errors';
import type { Clock, Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import { NO_OPTIONS, ownMembers } from '../core/objects';
import { Outage, retryAfterSeconds } from '../core/outage';
import { clientAuthorization, loggableUrl } from '../core/urls';
import { CallersByAddress, CallLimit } from './call-limit';
import { FairQueue, unitOf } from './fair-queue';
import type { Caller } from './fair-queue';
import { Exchanges, FetchError, fetchObject, unlessAborted } from '../net/http';
import { MAX_TOKEN_LENGTH } from './jws';
import { discoverEndpoint } from './keys/fetch-keys';
import type { DiscoveryOptions } from './keys/fetch-keys';
import type { JsonObject } from '../net/strict-json';
import type { OpaqueOptions } from './opaque-options';

/** Asks about a token: resolves with the response, with `undefined` when the token is not active, or rejects with a FetchError. */
type AskAbout = (token: string, signal: AbortSignal) => Promise<JsonObject | undefined>;

/** For one look at the metadata. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** Makes the function that asks the introspection endpoint about a token (RFC 7662 section 2). */
export function introspectionEndpoint(
  options: Omit<DiscoveryOptions, 'signal'> & OpaqueOptions & { readonly schedule: Schedule },
): AskAbout {
  const { url: given, clientId, clientSecret, authUrl } = options;
  const headers = ownMembers({ authorization: clientAuthorization(clientId, clientSecret) });
  const exchanges = new Exchanges(options.schedule);
  /** The URL in the metadata, which is looked up again after a call that failed. */
  let found: Promise<string> | undefined;

  function find(signal: AbortSignal): Promise<string> {
    // A time limit of its own: that of the first call which waits must not end the lookup for the others.
    found ??= exchanges.run(LOOKUP_TIMEOUT_MS, (limit) =>
      discoverEndpoint('introspection_endpoint', { ...options, signal: limit }),
    );
    return unlessAborted(signal, `the metadata of ${loggableUrl(authUrl)}`, found);
  }

  async function ask(token: string, signal: AbortSignal): Promise<JsonObject | undefined> {
    const url = given ?? (await find(signal));
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' });
    const response = await fetchObject(url, { ...options, signal, headers, form });
    if (response['active'] === false) return undefined;
    if (response['active'] === true) return response;
    throw new FetchError(`${loggableUrl(url)} did not say whether the token is active`, { status: 200 });
  }

  return (token, signal) =>
    ask(token, signal).catch((error: unknown) => {
      found = undefined;
      throw error;
    });
}

/** Knows which opaque tokens are active, by asking their issuer. */
interface Introspector<Known> {
  /** What is known about a token that was active at most `cacheMs` ago, the same object each time; `undefined`: ask. */
  readonly get: (token: string) => Known | undefined;
  /**
   * Asks about a token. Rejects with an AuthError `malformed_token`, `inactive`, `introspection_unavailable`, or
   * `too_many_unknown_keys` where too many tokens of the same client or site wait, or the endpoint limits its calls.
   *
   * @param caller - counts until the token was active once, then its client does
   */
  readonly introspect: (token: string, caller?: Caller) => Promise<Known>;
  /** Tokens whose response is pending. */
  readonly waiting: () => number;
  /** Ends the open calls; later ones reject. */
  readonly close: () => void;
}

/** The last response about an active token. */
interface Response<Known> {
  readonly known: Known;
  readonly client: string | undefined;
  readonly askedMs: number;
}

/** For one token: its turn and the call. */
const RESPONSE_TIMEOUT_MS = 5_000;
/** How long a token counts as inactive: it may have been issued a moment ago by another server of the issuer. */
const INACTIVE_MS = 5_000;
/** Calls: 16 at the same time where one unit is alone. */
const LIMITS = { running: 32, waiting: 256 };
const MAX_ACTIVE = 5_000;
const MAX_INACTIVE = 10_000;
const ASKING_BACK_OFF = { firstMs: 250, longestMs: 5_000 };
/** Time between two probes with a token of the gate: the shortest pause. */
const PROBE_EVERY_MS = 125;
const CREDENTIAL_REFUSED =
  'the authorization server refuses clientId or clientSecret of introspection; IdentityServer wants the name and a secret of an API resource';
const LIMITED =
  'the introspection endpoint limits calls: opaque tokens that are new here are 429 until its Retry-After is over';
const SHARED_ADDRESS =
  'more than half of all callers have one address: if it is that of a proxy, set "trust proxy", because callers share by address';
/** Pause between two warnings about responses that only some tokens get. */
const WARNING_EVERY_MS = 60_000;

/**
 * Makes an introspector. Tokens are remembered by their SHA-256. However many tokens callers make up, the issuer gets a
 * bounded number of calls at a time, one per token, shared fairly by clients and sites.
 */
export function introspector<Known extends object>({
  issuer,
  askAbout,
  trust,
  clientOf,
  cacheMs,
  logger,
  clock,
  schedule,
  random,
}: {
  readonly issuer: string;
  readonly askAbout: AskAbout;
  /** Makes what is cached from the response about an active token. */
  readonly trust: (claims: JsonObject) => Known;
  /** Names the client of a response, `undefined` where it names none. */
  readonly clientOf: (claims: JsonObject) => string | undefined;
  readonly cacheMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
}): Introspector<Known> {
  const active = new LRUCache<string, Response<Known>>({ max: MAX_ACTIVE });
  const inactive = new LRUCache<string, number>({ max: MAX_INACTIVE });
  const inFlight = new Map<string, Promise<Known>>();
  const calls = new FairQueue(LIMITS, 'opaque tokens');
  const exchanges = new Exchanges(schedule);
  const turn = spacer();
  const outage = new Outage(ASKING_BACK_OFF, clock, random);
  const limit = new CallLimit(clock);
  let callers: CallersByAddress | undefined = new CallersByAddress();
  let closed = false;
  let warnedMs = -Infinity;
  let probing = false;
  let probedMs = -Infinity;

  /** A negative age, after the clock has stepped back, is too old. */
  function isRecent(sinceMs: number | undefined, limitMs: number): boolean {
    const ageMs = clock() - (sinceMs ?? -Infinity);
    return ageMs >= 0 && ageMs < limitMs;
  }

  function cached(id: string): Known | undefined {
    const entry = active.get(id, NO_OPTIONS);
    return entry && isRecent(entry.askedMs, cacheMs) ? entry.known : undefined;
  }

  async function ask(token: string, id: string, caller: Caller): Promise<Known> {
    const known = active.get(id, NO_OPTIONS);
    // Only the response names the client of an opaque token: before it, that of a token that was active here is known.
    const site = (known ?? caller.client) ? undefined : unitOf(caller);
    noteAddress(caller.address);
    requireAvailable(site);
    return exchanges.run(RESPONSE_TIMEOUT_MS, (signal) => {
      const call = (): Promise<Known> => limit.run(site, () => callFor(token, id, site, signal));
      return calls.run({ ...caller, client: known?.client }, 1, () => turn().then(call), signal);
    });
  }

  function requireAvailable(site: string | undefined): void {
    const { waitMs } = outage;
    if (closed || waitMs > 0) throw unavailable('the introspection endpoint is not asked for now', waitMs);
    limit.requireAllowed(site);
  }

  async function callFor(token: string, id: string, site: string | undefined, signal: AbortSignal): Promise<Known> {
    // The endpoint can have failed while this call waited.
    requireAvailable(site);
    const askedMs = clock();
    let claims: JsonObject | undefined;
    try {
      claims = await askAbout(token, signal);
    } catch (error) {
      throw failed(error);
    }
    recovered();
    if (!claims) {
      limit.count(site);
      active.delete(id);
      inactive.set(id, askedMs, NO_OPTIONS);
      throw new AuthError('inactive');
    }
    inactive.delete(id);
    const known = trust(claims);
    active.set(id, { known, client: clientOf(claims), askedMs }, NO_OPTIONS);
    return known;
  }

  function noteAddress(address: string | undefined): void {
    if (address === undefined || !callers?.isMostOf(address)) return;
    callers = undefined;
    logger.warn({ issuer, address }, SHARED_ADDRESS);
  }

  function recovered(): void {
    outage.end((fields) => logger.info({ issuer, ...fields }, 'the introspection endpoint responds again'));
  }

  function failed(error: unknown): AuthError {
    const { message } = failureOf(error);
    const { waitMs } = outage;
    if (isLimited(error)) return limit.refusal;
    // A logger that throws must not end the process.
    if (!closed && waitMs === 0 && !limit.isPaused) probe(message).catch(() => undefined);
    return unavailable(message, waitMs);
  }

  /**
   * Asks about a token that no caller has chosen. Only if that fails too, the calls for all are paused: a firewall before
   * the issuer that refuses one token must not stop those for others.
   */
  async function probe(detail: string): Promise<void> {
    if (probing || isRecent(probedMs, PROBE_EVERY_MS)) return;
    probing = true;
    probedMs = clock();
    try {
      await exchanges.run(RESPONSE_TIMEOUT_MS, (signal) => askAbout(`made-up-by-tillgate-${randomUUID()}`, signal));
    } catch (error) {
      if (!closed && !isLimited(error)) pause(failureOf(error));
      return;
    } finally {
      probing = false;
    }
    recovered();
    if (isRecent(warnedMs, WARNING_EVERY_MS)) return;
    warnedMs = clock();
    logger.warn({ issuer, detail }, 'a token could not be introspected');
  }

  /** Whether the endpoint has responded with 429, which is no outage. */
  function isLimited(error: unknown): boolean {
    const { message, status, retryAfter } = failureOf(error);
    if (status !== 429) return false;
    if (limit.begin(retryAfter)) logger.warn({ issuer, detail: message }, LIMITED);
    return true;
  }

  function pause({ message, status }: ReturnType<typeof failureOf>): void {
    const areRefused = status === 401 || status === 403;
    outage.fail(message, (fields) => {
      if (areRefused) logger.error({ issuer, ...fields }, CREDENTIAL_REFUSED);
      else logger.warn({ issuer, ...fields }, 'the introspection endpoint is not available');
    });
  }

  return {
    get: (token) => cached(idOf(token)),
    waiting: () => inFlight.size,
    introspect(token, caller = {}) {
      if (token.length > MAX_TOKEN_LENGTH) {
        const privateDetail = `an opaque token of more than ${MAX_TOKEN_LENGTH} characters`;
        return Promise.reject(new AuthError('malformed_token', { privateDetail }));
      }
      const id = idOf(token);
      const known = cached(id);
      if (known) return Promise.resolve(known);
      if (isRecent(inactive.get(id, NO_OPTIONS), INACTIVE_MS)) return Promise.reject(new AuthError('inactive'));
      const underWay = inFlight.get(id);
      if (underWay) return underWay;
      const asking = ask(token, id, caller).finally(() => inFlight.delete(id));
      inFlight.set(id, asking);
      return asking;
    },
    close() {
      closed = true;
      exchanges.close();
    },
  };
}

/** The real timers: an app may fake them in its tests, before or after it loads this file. */
const { setImmediate: defer } = timers;
/** Turns of the event loop from the start of one call to that of the next. */
const TURNS_PER_CALL = 4;

/**
 * Makes the function that spaces out the starts of calls. Node accepts one connection in each turn of the event loop, in the
 * order in which they came: if a turn did the work of many calls, the connections of other callers would wait before fairness
 * can apply to them. While a call waits the loop does not sleep, so a process that has nothing else to do loses nothing.
 */
function spacer(): () => Promise<void> {
  let next = Promise.resolve();
  async function pass(start: Promise<void>): Promise<void> {
    await start;
    for (let turn = 0; turn < TURNS_PER_CALL; turn++) await new Promise<void>((resolve) => defer(resolve));
  }
  return () => {
    const start = next;
    next = pass(start);
    return start;
  };
}

/** Only the hash is kept: the memory of the process then holds no token that could be used. */
function idOf(token: string): string {
  return hash('sha256', token, 'base64');
}

function failureOf(error: unknown): Pick<FetchError, 'message' | 'status' | 'retryAfter'> {
  if (error instanceof FetchError) return error;
  return { message: 'introspection failed', status: undefined, retryAfter: undefined };
}

function unavailable(privateDetail: string, waitMs: number): AuthError {
  return new AuthError('introspection_unavailable', { privateDetail, retryAfterSeconds: retryAfterSeconds(waitMs) });
}
