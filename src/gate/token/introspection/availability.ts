import { AuthError } from '../../core/errors';
import type { Clock } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { Outage, retryAfterSeconds } from '../../core/outage';
import { FetchError } from '../../net/http';
import { CallLimit } from './call-limit';

/** How one introspection endpoint is watched. */
export interface AvailabilityOptions {
  readonly issuer: string;
  /** Asks about a token that no caller has chosen. */
  readonly probe: () => Promise<unknown>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
}

const ASKING_BACK_OFF = { firstMs: 250, longestMs: 5_000 };
/** Time between two probes with a token of the gate: the shortest pause. */
const PROBE_EVERY_MS = 125;
/** Pause between two warnings about responses that only some tokens get. */
const WARNING_EVERY_MS = 60_000;
const CREDENTIAL_REFUSED =
  'the authorization server refuses clientId or clientSecret of introspection; IdentityServer wants the name and a secret of an API resource';
const LIMITED =
  'the introspection endpoint limits calls: opaque tokens that are new here are 429 until its Retry-After is over';

/** Whether an introspection endpoint may be asked: it pauses for all callers while it fails, or limits its calls. */
export class Availability {
  readonly #options: AvailabilityOptions;
  readonly #outage: Outage;
  readonly #limit: CallLimit;
  #closed = false;
  #warnedMs = -Infinity;
  #probing = false;
  #probedMs = -Infinity;

  constructor(options: AvailabilityOptions) {
    this.#options = options;
    this.#outage = new Outage(ASKING_BACK_OFF, options.clock, options.random);
    this.#limit = new CallLimit(options.clock);
  }

  /**
   * Throws while it is not asked.
   *
   * @param site - whose tokens count; `undefined` for a caller that is exempt
   * @throws AuthError `introspection_unavailable` or `too_many_unknown_keys`
   */
  requireAvailable(site: string | undefined): void {
    const { waitMs } = this.#outage;
    if (this.#closed || waitMs > 0) throw unavailable('the introspection endpoint is not asked for now', waitMs);
    this.#limit.requireAllowed(site);
  }

  /** Asks about a token: `call` returns its claims, or `undefined`, which counts against the site. Rejects with an AuthError. */
  ask<Claims>(site: string | undefined, call: () => Promise<Claims | undefined>): Promise<Claims | undefined> {
    return this.#limit.run(site, async () => {
      // It can have failed while this call waited.
      this.requireAvailable(site);
      const claims = await call().catch((error: unknown) => this.#fail(error));
      this.#recover();
      if (!claims) this.#limit.count(site);
      return claims;
    });
  }

  /** Later calls are refused, and no probe pauses them any more. */
  close(): void {
    this.#closed = true;
  }

  #fail(error: unknown): never {
    const { message } = failureOf(error);
    const { waitMs } = this.#outage;
    if (this.#isLimited(error)) throw this.#limit.refusal;
    // A logger that throws must not end the process.
    if (!this.#closed && waitMs === 0 && !this.#limit.isPaused) this.#probe(message).catch(() => undefined);
    throw unavailable(message, waitMs);
  }

  /**
   * Asks about a token that no caller has chosen. Only if that fails too, the calls for all are paused: a firewall before
   * the issuer that refuses one token must not stop those for others.
   */
  async #probe(detail: string): Promise<void> {
    const { issuer, probe, logger, clock } = this.#options;
    if (this.#probing || isRecent(this.#probedMs, PROBE_EVERY_MS, clock())) return;
    this.#probing = true;
    this.#probedMs = clock();
    try {
      await probe();
    } catch (error) {
      if (!this.#closed && !this.#isLimited(error)) this.#pause(failureOf(error));
      return;
    } finally {
      this.#probing = false;
    }
    this.#recover();
    if (isRecent(this.#warnedMs, WARNING_EVERY_MS, clock())) return;
    this.#warnedMs = clock();
    logger.warn({ issuer, detail }, 'a token could not be introspected');
  }

  #recover(): void {
    const { issuer, logger } = this.#options;
    this.#outage.end((fields) => logger.info({ issuer, ...fields }, 'the introspection endpoint responds again'));
  }

  /** Whether the endpoint has responded with 429, which is no outage. */
  #isLimited(error: unknown): boolean {
    const { issuer, logger } = this.#options;
    const { message, status, retryAfter } = failureOf(error);
    if (status !== 429) return false;
    if (this.#limit.begin(retryAfter)) logger.warn({ issuer, detail: message }, LIMITED);
    return true;
  }

  #pause({ message, status }: ReturnType<typeof failureOf>): void {
    const { issuer, logger } = this.#options;
    const areRefused = status === 401 || status === 403;
    this.#outage.fail(message, (fields) => {
      if (areRefused) logger.error({ issuer, ...fields }, CREDENTIAL_REFUSED);
      else logger.warn({ issuer, ...fields }, 'the introspection endpoint is not available');
    });
  }
}

/** Whether less than a limit has passed. A negative age, after the clock has stepped back, is too old. */
export function isRecent(sinceMs: number | undefined, limitMs: number, nowMs: number): boolean {
  const ageMs = nowMs - (sinceMs ?? -Infinity);
  return ageMs >= 0 && ageMs < limitMs;
}

function failureOf(error: unknown): Pick<FetchError, 'message' | 'status' | 'retryAfter'> {
  if (error instanceof FetchError) return error;
  return { message: 'introspection failed', status: undefined, retryAfter: undefined };
}

function unavailable(privateDetail: string, waitMs: number): AuthError {
  return new AuthError('introspection_unavailable', { privateDetail, retryAfterSeconds: retryAfterSeconds(waitMs) });
}
