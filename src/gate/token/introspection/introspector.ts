import { hash, randomUUID } from 'node:crypto';
import * as timers from 'node:timers';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../../core/errors';
import { NO_OPTIONS } from '../../core/objects';
import { ActivityPublisher } from '../../core/activity-channels';
import { OutgoingRequests } from '../../net/http';
import type { JsonObject } from '../../net/strict-json';
import { CallersByAddress } from './call-limit';
import { FairQueue, unitOf, type Caller } from '../fair-queue';
import { MAX_TOKEN_LENGTH } from '../jws';
import { Availability, isRecent, type AvailabilityOptions } from './availability';
import type { AskAbout } from './endpoint';

/** What an introspector needs to know of one issuer. */
export interface IntrospectorOptions<Known> extends Omit<AvailabilityOptions, 'probe'> {
  readonly askAbout: AskAbout;
  /** Makes what is cached from the response about an active token. */
  readonly trust: (claims: JsonObject) => Known;
  /** Names the client of a response, `undefined` where it names none. */
  readonly clientOf: (claims: JsonObject) => string | undefined;
  /** How long in ms a token counts as active. */
  readonly cacheMs: number;
  readonly schedule: ConstructorParameters<typeof OutgoingRequests>[0];
}

/** For one token: its turn and the call. */
const RESPONSE_TIMEOUT_MS = 5_000;
/** How long a token counts as inactive: it may have been issued a moment ago by another server of the issuer. */
const INACTIVE_MS = 5_000;
/** Calls: 16 at the same time where one unit is alone. */
const LIMITS = { running: 32, waiting: 256 };
/** Begins the tokens that no caller has chosen. */
const MADE_UP = 'made-up-by-tillgate-';
const MAX_ACTIVE = 5_000;
const MAX_INACTIVE = 10_000;
const SHARED_ADDRESS =
  'more than half of all callers have one address: if it is that of a proxy, set "trust proxy", because callers share by address';

/**
 * Knows which opaque tokens are active, by asking their issuer. Tokens are remembered by their SHA-256. However many tokens callers
 * make up, the issuer gets a bounded number of calls at a time, one per token, shared fairly by clients and sites.
 */
export class Introspector<Known extends object> {
  readonly #options: IntrospectorOptions<Known>;
  /** The last response about each active token. */
  readonly #active = new LRUCache<string, { known: Known; client: string | undefined; askedMs: number }>({
    max: MAX_ACTIVE,
  });
  /** When each token was not active. */
  readonly #inactive = new LRUCache<string, number>({ max: MAX_INACTIVE });
  /** Tokens whose response is pending. */
  readonly #inFlight = new Map<string, Promise<Known>>();
  readonly #calls = new FairQueue(LIMITS, 'opaque tokens');
  readonly #turn = spacer();
  readonly #requests: OutgoingRequests;
  readonly #endpoint: Availability;
  readonly #activity: ActivityPublisher<'introspection'>;
  #callers: CallersByAddress | undefined = new CallersByAddress();

  constructor(options: IntrospectorOptions<Known>) {
    this.#options = options;
    this.#requests = new OutgoingRequests(options.schedule);
    this.#endpoint = new Availability({
      ...options,
      probe: () => this.#requests.run(RESPONSE_TIMEOUT_MS, (signal) => this.#askAbout(MADE_UP + randomUUID(), signal)),
    });
    this.#activity = new ActivityPublisher('introspection', options.issuer, () => ({ waiting: this.#inFlight.size }));
    this.#activity.publish('opened');
  }

  /** What is known about a token that was active at most `cacheMs` ago, the same object each time; `undefined`: ask. */
  get(token: string): Known | undefined {
    return this.#cached(idOf(token));
  }

  /**
   * Asks about a token. Rejects with an AuthError `malformed_token`, `inactive`, `introspection_unavailable`, or
   * `too_many_unknown_keys` where too many tokens of the same client or site wait, or the endpoint limits its calls.
   *
   * @param caller - counts until the token was active once, then its client does
   */
  async introspect(token: string, caller: Caller = {}): Promise<Known> {
    if (token.length > MAX_TOKEN_LENGTH) {
      const privateDetail = `an opaque token of more than ${MAX_TOKEN_LENGTH} characters`;
      throw new AuthError('malformed_token', { privateDetail });
    }
    const id = idOf(token);
    const known = this.#cached(id);
    if (known) return known;
    if (isRecent(this.#inactive.get(id, NO_OPTIONS), INACTIVE_MS, this.#options.clock())) {
      throw new AuthError('inactive');
    }
    const asking = this.#inFlight.get(id) ?? this.#ask(token, id, caller).finally(() => this.#inFlight.delete(id));
    this.#inFlight.set(id, asking);
    return asking;
  }

  /** Ends the open calls; later ones reject. */
  close(): void {
    this.#endpoint.close();
    this.#requests.close();
    this.#activity.publish('closed');
  }

  #cached(id: string): Known | undefined {
    const { cacheMs, clock } = this.#options;
    const entry = this.#active.get(id, NO_OPTIONS);
    return entry && isRecent(entry.askedMs, cacheMs, clock()) ? entry.known : undefined;
  }

  async #ask(token: string, id: string, caller: Caller): Promise<Known> {
    const known = this.#active.get(id, NO_OPTIONS);
    // Only the response names the client of an opaque token: before it, that of a token that was active here is known.
    const site = (known ?? caller.client) ? undefined : unitOf(caller);
    this.#noteAddress(caller.address);
    this.#endpoint.requireAvailable(site);
    return this.#requests.run(RESPONSE_TIMEOUT_MS, (signal) => {
      const call = (): Promise<Known> => this.#callFor(token, id, site, signal);
      return this.#calls.run({ ...caller, client: known?.client }, 1, () => this.#turn().then(call), signal);
    });
  }

  async #callFor(token: string, id: string, site: string | undefined, signal: AbortSignal): Promise<Known> {
    const { trust, clientOf, clock } = this.#options;
    let askedMs = 0;
    const claims = await this.#endpoint.ask(site, () => {
      askedMs = clock();
      return this.#askAbout(token, signal);
    });
    if (!claims) {
      this.#active.delete(id);
      this.#inactive.set(id, askedMs, NO_OPTIONS);
      throw new AuthError('inactive');
    }
    this.#inactive.delete(id);
    const known = trust(claims);
    this.#active.set(id, { known, client: clientOf(claims), askedMs }, NO_OPTIONS);
    return known;
  }

  #askAbout(token: string, signal: AbortSignal): Promise<JsonObject | undefined> {
    return this.#activity.during(() => this.#options.askAbout(token, signal));
  }

  #noteAddress(address: string | undefined): void {
    if (address === undefined || !this.#callers?.isMostOf(address)) return;
    this.#callers = undefined;
    const { issuer, logger } = this.#options;
    logger.warn({ issuer, address }, SHARED_ADDRESS);
  }
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
