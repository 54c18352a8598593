import { systemClock } from '../core/clock';
import type { Clock } from '../core/clock';
import { readOptions } from '../core/options';
import type { GateOptions, IssuerOptions } from '../index';
import { ALGORITHMS } from '../token/algorithms';
import type { Algorithm } from '../token/algorithms';
import { testClock } from './test-issuer-clock';
import type { TestClock } from './test-issuer-clock';
import { testGenerations } from './test-issuer-generations';
import { testKey } from './test-issuer-keys';
import { testKeySet } from './test-issuer-key-set';
import { readToken, writeToken } from './test-issuer-token';
import type { TestToken } from './test-issuer-token';

/** Options of `createTestIssuer()`. */
export interface TestIssuerOptions {
  /** `iss` of the tokens. Default `https://login.test`. */
  readonly issuer?: string | undefined;
  /** `aud` of the tokens. Default `https://api.test`. */
  readonly audience?: string | undefined;
  /** What good tokens are signed with. Default `ES256`. */
  readonly algorithm?: Algorithm | undefined;
  /** Time in ms since the epoch from which `clock` takes its own. Default: the wall clock. */
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
  token(token?: TestToken): string;
  /** The client credential has changed: answers its new generation. Earlier tokens are refused with the next request. */
  bump(clientId?: string): number;
  /** Signs with a new key from now on and answers its id. The earlier keys stay in the key set, so their tokens stay good. */
  rotate(): string;
  /**
   * Withdraws a key that does not sign any more from the key set: its tokens are refused. Without `keyId` all such keys.
   *
   * @throws Error when there is no such key, or it is the one that signs
   */
  removeKey(keyId?: string): void;
}

const DEFAULT_CLIENT = 'test-client';

/**
 * Makes an issuer for contract tests. Its keys and generations are given to the gate as they are, so nothing is fetched
 * and nothing listens; what it changes counts with the next request.
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
  const read = readOptions('createTestIssuer', options, ['issuer', 'audience', 'algorithm', 'clock']);
  const issuer = read.string('issuer') ?? 'https://login.test';
  const audience = read.string('audience') ?? 'https://api.test';
  const algorithm = read.oneOf('algorithm', ALGORITHMS, 'ES256');
  const clock = testClock(read.callable('clock', systemClock));
  const keys = testKeySet(algorithm);
  const generations = testGenerations(clock.now);
  let stranger: ReturnType<typeof testKey> | undefined;

  return {
    issuer,
    audience,
    clock,
    options: { issuer, audience, keys: keys.jwks, generations: generations.source, clock: clock.now },
    get keyId() {
      return keys.signing.keyId;
    },
    token(token = {}) {
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
    },
    bump: (clientId = DEFAULT_CLIENT) => generations.bump(clientId),
    rotate: () => keys.rotate(),
    removeKey: (keyId) => keys.remove(keyId),
  };
}
