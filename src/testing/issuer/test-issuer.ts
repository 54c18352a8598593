import { setImmediate as turn } from 'node:timers/promises';
import { memoryGenerations } from 'tillgate/generations';
import type { MemoryLog, Schedule } from 'tillgate/generations';
import { adviceContext, ALGORITHMS, dependencies, describe, didYouMean } from 'tillgate/internal';
import { isObject, option, PRESETS, readOptions, systemSchedule } from 'tillgate/internal';
import type { TableOf, ValuesOf } from 'tillgate/internal';
import type { GateOptions, IssuerOptions } from 'tillgate';
import { DEFAULT_CLIENT, signTestToken, testKey } from './test-token';
import type { Algorithm, TestKey, TestToken } from './test-token';
import { inShape } from './token-shape';
import type { TokenShape } from './token-shape';

/** Options of `createTestIssuer()`. */
export interface TestIssuerOptions {
  /** `iss` of the tokens. Default `https://login.test`. */
  readonly issuer?: string | undefined;
  /** `aud` of the tokens. Default `https://api.test`. */
  readonly audience?: string | undefined;
  /** Shape of the tokens: their type and claims. Default `rfc9068`. */
  readonly preset?: IssuerOptions['preset'];
  /** As `scopes` of `authenticate()`: the claim that gets the scopes of a token, under names that the map has for them. */
  readonly scopes?: IssuerOptions['scopes'];
  /** Signs good tokens. Default `ES256`. */
  readonly algorithm?: `${'RS' | 'PS' | 'ES'}${256 | 384 | 512}` | 'EdDSA' | 'Ed25519' | undefined;
  /** Time in ms since the epoch on which the issuer's `clock` is based. Default: the wall clock. */
  readonly clock?: (() => number) | undefined;
  /** Whether gates log: each refusal, warnings, errors. Default: false, `options` has `logger: false`. */
  readonly log?: boolean | undefined;
}

/** The time of a test issuer and of the gates that were given its `options`. */
export interface TestClock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Moves forward by `ms` milliseconds; a running clock keeps running. Timers of the gates that are due by then, such as
   * the next fetch of a key set or the end of a wait, fire in order, each one after what is under way has settled.
   *
   * @throws TypeError when `ms` is not a number of at least 0
   */
  advance(ms: number): void;
  /**
   * Stops the clock at a time in ms since the epoch, which may be in the past.
   *
   * @throws TypeError when `ms` is not a number
   */
  set(ms: number): void;
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

/** The options that every test issuer has. */
export const TEST_ISSUER_OPTIONS = {
  audience: option.string('https://api.test'),
  preset: option.oneOf(Object.keys(PRESETS) as NonNullable<IssuerOptions['preset']>[]),
  scopes: option('an object with from, map or both', (given) =>
    isObject(given) ? (given as NonNullable<IssuerOptions['scopes']>) : undefined,
  ),
  algorithm: option.oneOf(ALGORITHMS, 'ES256'),
  log: option.boolean(false),
  ...dependencies('clock'),
} satisfies TableOf<Omit<TestIssuerOptions, 'issuer'>>;

/**
 * Makes an issuer for contract tests. The gate gets its keys and generations directly, so nothing is fetched and nothing
 * listens, and every change takes effect with the next request.
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { createTestIssuer } from '@tillgate/testing';
 *
 * const issuer = createTestIssuer();
 * const gate = authenticate(issuer.options);
 * const authorization = `Bearer ${issuer.token({ scope: 'orders:read' })}`;
 * issuer.clock.advance(600_000); // the token has expired
 * ```
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  const { issuer, ...given } = readOptions('createTestIssuer', options, {
    issuer: option.string('https://login.test'),
    ...TEST_ISSUER_OPTIONS,
  } satisfies TableOf<TestIssuerOptions>);
  return publishingIssuer(issuer, given, 'options').testIssuer;
}

/**
 * Makes a test issuer along with the key set and the generations that it publishes.
 *
 * @param keysFrom - where gates get its keys: in the `options` of the issuer, or from its metadata over HTTP
 */
export function publishingIssuer(
  issuer: string,
  { audience, preset, scopes, algorithm, clock: base, log: isLogging }: ValuesOf<typeof TEST_ISSUER_OPTIONS>,
  keysFrom: 'options' | 'http',
): { readonly testIssuer: TestIssuer; readonly jwks: object; readonly log: MemoryLog } {
  const moved = testClock(base);
  const { schedule } = moved;
  const keys = testKeySet(algorithm);
  const { log, generationOf, issueTimeOf, bump } = testGenerations(moved.clock.now, schedule);
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

  // Test runners print a stack below each line on the console.
  const logger = isLogging ? {} : { logger: false as const };
  const shape = preset || scopes ? shapeOf(preset ?? 'rfc9068', scopes) : undefined;
  const given = { ...(preset && { preset }), ...(scopes && { scopes }), ...logger };
  const options = { issuer, audience, generationSource: log, clock: clock.now, schedule, ...given };

  function tokenIn(own: TokenShape | undefined, token: TestToken = {}): string {
    const { clientId = DEFAULT_CLIENT } = token;
    const state = { issuer, audience, nowMs: clock.now(), generationOf, key: keys.signing, foreignKey };
    const isByTime = own?.generationClaim === 'iat' && !token.expired;
    const issued = isByTime ? { ...state, nowMs: issueTimeOf(clientId) } : state;
    const signed = signTestToken(own ? inShape(token, clientId, generationOf(clientId), own) : token, issued);
    if (token.superseded) bump(clientId);
    return signed;
  }
  const testIssuer: TestIssuer = {
    issuer,
    audience,
    clock,
    options: keysFrom === 'options' ? { ...options, keys: keys.jwks } : options,
    get keyId() {
      return keys.signing.keyId;
    },
    token: (token) => tokenIn(shape, token),
    bump,
    rotate: () => keys.rotate(),
    removeKey: (keyId) => keys.remove(keyId),
  };
  signers.set(testIssuer, tokenIn);
  return { testIssuer, jwks: keys.jwks, log };
}

const signers = new WeakMap<object, (shape: TokenShape, token?: TestToken) => string>();

/** An issuer whose tokens are in the shape that a gate expects; one that this kit has not made stays as it is. */
export function reshaped<Source extends Pick<TestIssuer, 'token'>>(issuer: Source, shape: TokenShape): Source {
  const sign = signers.get(issuer);
  if (!sign) return issuer;
  const token = (one?: TestToken): string => sign(shape, one);
  return Object.create(issuer, { token: { value: token } }) as Source;
}

function shapeOf(name: NonNullable<IssuerOptions['preset']>, given: IssuerOptions['scopes']): TokenShape {
  const { scopes } = adviceContext('', { preset: name, scopes: given });
  const preset = PRESETS[name];
  const { stampedClaim: generationClaim } = preset;
  return { preset, scopes, generationClaim, generationPath: [generationClaim] };
}

/** Keeps the generations of clients in memory, in a log that gates have read when the next request comes. */
function testGenerations(clock: () => number, schedule: Schedule) {
  const log = memoryGenerations({ clock, schedule });
  const floors = new Map<string, number>();
  /** When the last token of a client was issued that is compared by its time, in ms. */
  const issued = new Map<string, number>();
  // The first one is so early that setting the clock back never puts a generation in the future.
  const generationOf = (clientId: string): number => floors.get(clientId) ?? 1e12; // Times in ms begin here.

  /** Not before the second after a change: the gate rounds the time down to seconds. */
  function issueTimeOf(clientId: string): number {
    const floorMs = floors.has(clientId) ? Math.ceil(generationOf(clientId) / 1000) * 1000 : 0;
    const timeMs = Math.max(clock(), floorMs);
    issued.set(clientId, Math.floor(timeMs / 1000) * 1000);
    return timeMs;
  }

  function bump(clientId = DEFAULT_CLIENT): number {
    const afterIssue = (issued.get(clientId) ?? 0) + 1;
    const generation = Math.max(generationOf(clientId) + 1, Math.floor(clock()), afterIssue);
    floors.set(clientId, generation);
    void log.append([[clientId, generation]]);
    return generation;
  }
  return { log, generationOf, issueTimeOf, bump };
}

/** Makes the keys of a test issuer: one signs, all are published. Every change replaces the list in the published set. */
function testKeySet(algorithm: Algorithm) {
  let signing = testKey(algorithm);
  const jwks = { keys: [signing.jwk] };

  return {
    jwks,
    get signing(): TestKey {
      return signing;
    },
    rotate(): string {
      signing = testKey(algorithm);
      jwks.keys = [...jwks.keys, signing.jwk];
      return signing.keyId;
    },
    remove(keyId?: string): void {
      const earlier = jwks.keys.flatMap(({ kid }) => (kid === signing.keyId ? [] : [String(kid)]));
      if (keyId === signing.keyId) throw new Error('removeKey(): this key signs; rotate() first');
      if (earlier.length === 0) throw new Error('removeKey(): the only key is the one that signs; rotate() first');
      if (keyId !== undefined && !earlier.includes(keyId)) {
        throw new Error(`removeKey(): no key ${JSON.stringify(keyId)} is published${didYouMean(keyId, earlier)}`);
      }
      jwks.keys = jwks.keys.filter(({ kid }) => (keyId === undefined ? kid === signing.keyId : kid !== keyId));
    },
  };
}

/** Makes a clock that runs like `base` until it is moved, and a schedule whose timers follow it. */
function testClock(base: () => number): { readonly clock: TestClock; readonly schedule: Schedule } {
  /** Timers with the time at which each is due, in ms. */
  const pending = new Map<() => void, number>();
  let offsetMs = 0;
  let stoppedMs: number | undefined;

  function now(): number {
    return (stoppedMs ?? base()) + offsetMs;
  }

  /** What is under way may cancel a timer: a read that returns has no time limit any more. */
  async function runDue(): Promise<void> {
    const due = [...pending].filter(([, dueMs]) => dueMs <= now()).sort(([, a], [, b]) => a - b);
    for (const [run] of due) {
      await turn();
      run();
    }
  }

  const clock: TestClock = {
    now,
    advance(ms) {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new TypeError(`clock.advance(): expected milliseconds from 0 on, got ${describe(ms)}; set() goes back`);
      }
      offsetMs += ms;
      void runDue();
    },
    set(ms) {
      if (!Number.isFinite(ms)) {
        throw new TypeError(`clock.set(): expected milliseconds since the epoch, got ${describe(ms)}`);
      }
      stoppedMs = ms;
      offsetMs = 0;
      void runDue();
    },
  };

  /** Fires after the real delay, or earlier when the clock is moved past it. */
  function schedule(task: () => void, delayMs: number): { cancel(): void } {
    const timer = systemSchedule(run, delayMs);
    function cancel(): boolean {
      timer.cancel();
      return pending.delete(run);
    }
    function run(): void {
      if (cancel()) task();
    }
    pending.set(run, now() + delayMs);
    return { cancel };
  }

  return { clock, schedule };
}
