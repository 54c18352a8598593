import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/errors';
import type { Logger } from '../core/logger';
import { isObject } from '../core/objects';
import { DEPENDENCIES, option, readOptions, readStrings } from '../core/options';
import type { TableOf } from '../core/options';
import { FIRST_TIME_MS, requireChange } from '../generation/generation';
import type { GenerationSource } from '../generation/log';
import { isInMemory } from '../generation/memory';
import { securityEventVerifier } from '../token/security-event';
import type { SecurityEvent } from '../token/security-event';
import type { GateOptions, IssuerOptions } from './options';
import { ISSUER_URL, KEY_SET, urlCheck } from './read-options';
import { openKeys } from './issuer';
import type { Caller } from '../token/fair-queue';
import { ALGORITHMS } from '../token/signature';

/** Options of `signalsReceiver()`. */
export interface SignalsReceiverOptions
  extends
    Pick<IssuerOptions, 'jwksUri' | 'keys'>,
    Pick<GateOptions, 'allowHttp' | 'logger' | 'clock' | 'schedule' | 'fetch' | 'random'> {
  /** Exactly the `iss` of the security event tokens. */
  readonly transmitter: string;
  /** Accepted `aud` of the security event tokens, one of several. */
  readonly audience: string | readonly string[];
  /**
   * Where the floors are published: a source with `append` that survives a restart. One in memory is for tests: it is
   * warned about, and refused in production.
   */
  readonly generationSource: GenerationSource;
  /** `iss` of the subjects, which is the issuer of the access tokens. Default: `transmitter`. */
  readonly issuer?: string | undefined;
  /** The gate's `generationClaim`: `'iat'` where it compares the issue time. Default: a generation in ms. */
  readonly generationClaim?: string | undefined;
}

const SIGNALS_OPTIONS = {
  transmitter: option.required(ISSUER_URL, 'the iss of the security event tokens'),
  audience: option.required(option('a non-empty string, or an array of them', readStrings)),
  generationSource: option.required(
    option('a generation source with append()', (given) => {
      const source = given as Required<GenerationSource> | null;
      return typeof source?.append === 'function' ? source : undefined;
    }),
  ),
  issuer: option.string(),
  generationClaim: option.string(),
  jwksUri: option.string(),
  keys: KEY_SET,
  allowHttp: option.boolean(false),
  ...DEPENDENCIES,
} satisfies TableOf<SignalsReceiverOptions>;

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';
/** Events after which earlier tokens of a client must die. */
const EVENTS = ['token-claims-change', 'credential-change', 'session-revoked'].map((name) => CAEP + name);
const REMEMBERED_EVENTS = 100_000;

/**
 * Opens the receiving side of a transmitter: its keys, and the source in which its events raise floors.
 *
 * @throws TypeError when an option is wrong
 */
export function openSecurityEvents(options: SignalsReceiverOptions): {
  readonly transmitter: string;
  readonly logger: Logger;
  /** Verifies an event token and publishes its floors. Rejects with an AuthError when the token is refused. */
  receive(eventToken: string, caller: Caller): Promise<void>;
  close(): void;
} {
  const settings = readOptions('signalsReceiver', options, SIGNALS_OPTIONS);
  const { transmitter, audience: audiences, generationSource, jwksUri, keys: given, clock, logger } = settings;
  if (isInMemory(generationSource)) refuseToForget(logger);
  if (given && jwksUri !== undefined) throw new TypeError('signalsReceiver(): give "keys" or "jwksUri", not both');
  const checkUrl = urlCheck('signalsReceiver', settings.allowHttp);
  if (!given) checkUrl(jwksUri ?? transmitter, jwksUri === undefined ? 'transmitter' : 'jwksUri');
  const keys = openKeys(
    {
      ...{ issuer: transmitter, authUrl: transmitter, jwksUri, keys: given, checkUrl },
      ...{ keysMaxAgeMs: 600_000, keysStaleMs: 3_600_000 },
    },
    settings,
    { factory: 'signalsReceiver' },
  );
  const accepted = { transmitter, audiences, keys, algorithms: ALGORITHMS, clockToleranceMs: 10_000, clock };
  const verify = securityEventVerifier(accepted);
  const floorAt = settings.generationClaim === 'iat' ? endOfSecond : Math.floor;
  const seen = new LRUCache<string, true>({ max: REMEMBERED_EVENTS });

  async function apply(event: SecurityEvent): Promise<void> {
    // A floor before 2001 would count as a counter, which no token in ms is lower than.
    if (event.issuedAtMs < FIRST_TIME_MS) throw invalidEvent('iat is before 2001');
    for (const [type, payload] of Object.entries(event.events)) {
      if (!EVENTS.includes(type)) continue;
      const fields = { transmitter, type, tokenId: event.tokenId };
      const clientId = clientOf(event, payload, settings.issuer ?? transmitter);
      if (clientId === undefined) {
        logger.info(fields, 'a security event is about no client of the issuer');
        continue;
      }
      const floor = floorAt(changedAtMs(event, payload));
      requireStorable(clientId, floor);
      await generationSource.append([[clientId, floor]]);
      logger.info({ ...fields, clientId }, 'a security event raised the floor of a client');
    }
  }

  return {
    transmitter,
    logger,
    async receive(eventToken, caller) {
      const event = await verify(eventToken, caller);
      if (seen.has(event.tokenId)) return;
      await apply(event);
      // Remembered only now: a delivery whose floor could not be published must be repeated.
      seen.set(event.tokenId, true);
    },
    close: () => keys.close(),
  };
}

/** No store holds such a client, so a repeated delivery would never succeed: 400, not 503. */
function requireStorable(clientId: string, floor: number): void {
  try {
    requireChange([clientId, floor], floor);
  } catch (cause) {
    throw invalidEvent('sub cannot be stored', cause);
  }
}

function invalidEvent(privateDetail: string, cause?: unknown): AuthError {
  return new AuthError('invalid_claims', { privateDetail, cause });
}

function memberOf(payload: unknown, name: string): unknown {
  return isObject(payload) ? payload[name] : undefined;
}

/** `sub_id` at the top (SSF 1.0), or `subject` inside the event (as earlier drafts had it). */
function clientOf(event: SecurityEvent, payload: unknown, issuer: string): string | undefined {
  const subject = (event.subject ?? memberOf(payload, 'subject')) as Record<string, unknown> | undefined;
  const { format, iss, sub } = subject ?? {};
  return format === 'iss_sub' && iss === issuer && typeof sub === 'string' && sub !== '' ? sub : undefined;
}

/**
 * Time of the change: `event_timestamp` (CAEP 1.0 section 2) in seconds, never later than the event token, because a
 * floor in the future would refuse tokens that are not issued yet.
 */
function changedAtMs(event: SecurityEvent, payload: unknown): number {
  const timestamp = memberOf(payload, 'event_timestamp');
  const isTime = typeof timestamp === 'number' && timestamp * 1000 >= FIRST_TIME_MS;
  return isTime ? Math.min(timestamp * 1000, event.issuedAtMs) : event.issuedAtMs;
}

/**
 * Times of events are whole seconds, and so are issue times: the floor is the end of the second, so that a token that
 * was issued in the same second before the change dies with the rest.
 */
function endOfSecond(changedAtMs: number): number {
  return Math.floor(changedAtMs / 1000) * 1000 + 999;
}

/** A 202 says that the event need not be sent again, but a source in memory forgets it with the process. */
function refuseToForget(logger: Logger): void {
  if (process.env['NODE_ENV'] === 'production') {
    throw new TypeError(
      'signalsReceiver(): option "generationSource" is in memory and forgets every event at a restart; ' +
        'in production give redisGenerations() or postgresGenerations()',
    );
  }
  logger.warn({}, 'signalsReceiver(): the generation source is in memory: a restart forgets every event it confirmed');
}
