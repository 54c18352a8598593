import { systemClock } from '../core/clock';
import type { Clock } from '../core/clock';
import type { OptionReader } from '../core/options';
import type { GateOptions, IssuerOptions } from '../index';
import { ALGORITHMS } from '../token/algorithms';
import type { Algorithm } from '../token/algorithms';
import { testClock } from './test-issuer-clock';
import type { TestClock } from './test-issuer-clock';
import { testGenerations } from './test-issuer-generations';
import type { TestGenerations } from './test-issuer-generations';
import { testKey } from './test-issuer-keys';
import { testKeySet } from './test-issuer-key-set';
import type { TestKeySet } from './test-issuer-key-set';
import { readToken, writeToken } from './test-issuer-token';
import type { TestToken } from './test-issuer-token';

/** Options that every test issuer has. */
export interface CommonIssuerOptions {
  /** `aud` of the tokens. Default `https://api.test`. */
  readonly audience?: string | undefined;
  /** What good tokens are signed with. Default `ES256`. */
  readonly algorithm?: Algorithm | undefined;
  /** Time in ms since the epoch from which the issuer's `clock` takes its own. Default: the wall clock. */
  readonly clock?: Clock | undefined;
}

/** An issuer for tests: keys of its own, any token, its own time. */
export interface TestIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** What `authenticate()` needs to trust this issuer. Spread it and add what the test is about. */
  readonly options: GateOptions & IssuerOptions;
  /** The time of this issuer and of every gate that was given its `options`. */
  readonly clock: TestClock;
  /** Id of the key that signs. */
  readonly keyId: string;
  /**
   * Signs a token (RFC 9068), a good one unless told otherwise.
   *
   * @throws TypeError when an option is unknown or mixed up
   */
  token(this: void, token?: TestToken): string;
  /** The client credential has changed: answers its new generation. Earlier tokens are refused with the next request. */
  bump(this: void, clientId?: string): number;
  /** Signs with a new key from now on and answers its id. The earlier keys stay in the key set, so their tokens stay good. */
  rotate(this: void): string;
  /**
   * Withdraws a key that does not sign any more from the key set: its tokens are refused. Without `keyId` all such keys.
   *
   * @throws Error when there is no such key, or it is the one that signs
   */
  removeKey(this: void, keyId?: string): void;
}

/** Checked options of every test issuer. */
export interface CommonSettings {
  readonly audience: string;
  readonly algorithm: Algorithm;
  readonly clock: Clock;
}

/** A test issuer and what stands behind it. */
export interface TestIssuerParts {
  readonly testIssuer: TestIssuer;
  readonly keys: TestKeySet;
  readonly generations: TestGenerations;
}

/** Names of the options that every test issuer has. */
export const COMMON_OPTIONS = [
  'audience',
  'algorithm',
  'clock',
] as const satisfies readonly (keyof CommonIssuerOptions)[];

const DEFAULT_CLIENT = 'test-client';

/**
 * Reads the options that every test issuer has.
 *
 * @throws TypeError when one is wrong
 */
export function readCommonOptions(read: OptionReader<(typeof COMMON_OPTIONS)[number]>): CommonSettings {
  return {
    audience: read.string('audience') ?? 'https://api.test',
    algorithm: read.oneOf('algorithm', ALGORITHMS, 'ES256'),
    clock: read.callable('clock', systemClock),
  };
}

/** Makes what every test issuer is made of; its keys are given to the gate, or fetched by it. */
export function testIssuerParts(
  { issuer, audience, algorithm, clock: base }: CommonSettings & { readonly issuer: string },
  gateHasKeys: 'given' | 'fetched',
): TestIssuerParts {
  const { clock, schedule } = testClock(base);
  const keys = testKeySet(algorithm);
  const generations = testGenerations(clock.now);
  let stranger: ReturnType<typeof testKey> | undefined;

  function token(token: TestToken = {}): string {
    const plan = readToken(token, DEFAULT_CLIENT);
    const written = writeToken(plan, {
      issuer,
      audience,
      nowMs: clock.now(),
      generation: generations.of(plan.clientId),
      key: keys.signing,
      foreignKey: () => (stranger ??= testKey(algorithm)),
    });
    if (plan.superseded) generations.bump(plan.clientId);
    return written;
  }

  const common = { issuer, audience, generationSource: generations.source, clock: clock.now, schedule };
  const testIssuer: TestIssuer = {
    issuer,
    audience,
    clock,
    options: gateHasKeys === 'given' ? { ...common, keys: keys.jwks } : common,
    get keyId() {
      return keys.signing.keyId;
    },
    token,
    bump: (clientId = DEFAULT_CLIENT) => generations.bump(clientId),
    rotate: () => keys.rotate(),
    removeKey: (keyId) => keys.remove(keyId),
  };
  return { testIssuer, keys, generations };
}
