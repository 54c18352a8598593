import { systemClock } from '../../core/clock';
import type { Clock, Schedule } from '../../core/clock';
import { readOptions } from '../../core/options';
import type { OptionReader } from '../../core/options';
import { FIRST_TIME_MS } from '../../generation/generation';
import { memoryGenerations } from '../../generation/memory';
import type { MemoryLog } from '../../generation/memory';
import type { GateOptions, IssuerOptions } from '../../index';
import { ALGORITHMS } from '../../token/algorithms';
import { testClock } from './clock';
import type { TestClock } from './clock';
import { testKey, testKeySet } from './keys';
import type { TestKey } from './keys';
import { DEFAULT_CLIENT, signTestToken } from './token';
import type { TestToken } from './token';

/** Options of `createTestIssuer()`. */
export interface TestIssuerOptions {
  /** `iss` of the tokens. Default `https://login.test`. */
  readonly issuer?: string | undefined;
  /** `aud` of the tokens. Default `https://api.test`. */
  readonly audience?: string | undefined;
  /** Signs good tokens. Default `ES256`. */
  readonly algorithm?: `${'RS' | 'PS' | 'ES'}${256 | 384 | 512}` | 'EdDSA' | 'Ed25519' | undefined;
  /** Time in ms since the epoch on which the issuer's `clock` is based. Default: the wall clock. */
  readonly clock?: (() => number) | undefined;
}

/** An issuer for tests: its own keys, any token, its own time. */
export interface TestIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** What `authenticate()` needs to trust this issuer. Spread it to add options of the test. */
  readonly options: GateOptions & IssuerOptions;
  /** The time of this issuer and of every gate that was given its `options`. */
  readonly clock: TestClock;
  /** Id of the key that signs. */
  readonly keyId: string;
  /**
   * Signs a token (RFC 9068), a good one by default.
   *
   * @throws TypeError when an option is unknown or has the wrong type
   */
  token(this: void, token?: TestToken): string;
  /** Changes the client credential and returns its new generation. The next request with an earlier token is refused. */
  bump(this: void, clientId?: string): number;
  /** Signs with a new key from now on and returns its id. The earlier keys stay in the key set, so their tokens stay good. */
  rotate(this: void): string;
  /**
   * Removes a key that no longer signs from the key set: its tokens are refused. Without `keyId` all such keys.
   *
   * @throws Error when there is no such key, or it is the one that signs
   */
  removeKey(this: void, keyId?: string): void;
}

/** A test issuer with the key set and the generations that it publishes. */
export interface PublishingIssuer {
  readonly testIssuer: TestIssuer;
  readonly jwks: object;
  readonly log: MemoryLog;
}

/** Names of the options that every test issuer has. */
export const COMMON_OPTIONS = [
  'audience',
  'algorithm',
  'clock',
] as const satisfies readonly (keyof TestIssuerOptions)[];

/**
 * Makes an issuer for contract tests. The gate gets its keys and generations directly, so nothing is fetched and nothing
 * listens, and every change takes effect with the next request.
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { createTestIssuer } from 'tillgate/testing';
 *
 * const issuer = createTestIssuer();
 * const gate = authenticate(issuer.options);
 * const authorization = `Bearer ${issuer.token({ scope: 'orders:read' })}`;
 * issuer.clock.advance(600_000); // the token has expired
 * ```
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  const read = readOptions('createTestIssuer', options, ['issuer', ...COMMON_OPTIONS]);
  const issuer = read.string('issuer') ?? 'https://login.test';
  return publishingIssuer(issuer, read, 'options').testIssuer;
}

/**
 * Makes a test issuer along with what it publishes.
 *
 * @param keysFrom - where gates get its keys: in the `options` of the issuer, or from its metadata over HTTP
 * @throws TypeError when one of the common options is wrong
 */
export function publishingIssuer(
  issuer: string,
  read: OptionReader<(typeof COMMON_OPTIONS)[number]>,
  keysFrom: 'options' | 'http',
): PublishingIssuer {
  const audience = read.string('audience') ?? 'https://api.test';
  const algorithm = read.oneOf('algorithm', ALGORITHMS, 'ES256');
  const moved = testClock(read.callable('clock', systemClock));
  const { schedule } = moved;
  const keys = testKeySet(algorithm);
  const { log, generationOf, bump } = testGenerations(moved.clock.now, schedule);
  const clock: TestClock = {
    ...moved.clock,
    set(ms) {
      moved.clock.set(ms);
      // Gates read the log again, because they know nothing of the time since.
      void log.append([]);
    },
  };
  let foreign: TestKey | undefined;
  const foreignKey = (): TestKey => (foreign ??= testKey(algorithm));

  const options = { issuer, audience, generationSource: log, clock: clock.now, schedule };
  const testIssuer: TestIssuer = {
    issuer,
    audience,
    clock,
    options: keysFrom === 'options' ? { ...options, keys: keys.jwks } : options,
    get keyId() {
      return keys.signing.keyId;
    },
    token(token = {}) {
      const state = { issuer, audience, nowMs: clock.now(), generationOf, key: keys.signing, foreignKey };
      const signed = signTestToken(token, state);
      if (token.superseded) bump(token.clientId);
      return signed;
    },
    bump,
    rotate: () => keys.rotate(),
    removeKey: (keyId) => keys.remove(keyId),
  };
  return { testIssuer, jwks: keys.jwks, log };
}

/** Keeps the generations of clients in memory, in a log that gates have read when the next request comes. */
function testGenerations(clock: Clock, schedule: Schedule) {
  const log = memoryGenerations({ clock, schedule });
  const floors = new Map<string, number>();
  // The first one is so early that setting the clock back never puts a generation in the future.
  const generationOf = (clientId: string): number => floors.get(clientId) ?? FIRST_TIME_MS;

  function bump(clientId = DEFAULT_CLIENT): number {
    const generation = Math.max(generationOf(clientId) + 1, Math.floor(clock()));
    floors.set(clientId, generation);
    void log.append([[clientId, generation]]);
    return generation;
  }
  return { log, generationOf, bump };
}
