import type { AuthError } from '../../../../src/gate';
import type { UnverifiedHeader } from '../../../../src/gate/token/jws';
import type { VerificationKey } from '../../../../src/gate/token/keys/key-set';
import type { KeySource } from '../../../../src/gate/token/keys/key-set';
import type { FetchedKeys } from '../../../../src/gate/token/keys/fetch-keys';
import { RemoteKeys } from '../../../../src/gate/token/keys/remote-keys';
import { fakeTime, settle } from '../../../support/fake-time';
import type { FakeTime } from '../../../support/fake-time';
import { testKey } from '../../../support/keys';
import { recordingLogger } from '../../../support/log';
import type { RecordingLogger } from '../../../support/log';

export const TTL_MS = 600_000;
/** With `random: () => 0.5`. */
export const REFRESH_MS = 0.8 * TTL_MS;

const key = (keyId: string): VerificationKey => ({
  keyId,
  algorithms: ['ES256'],
  key: testKey().privateKey,
  costUs: 50,
  tenant: undefined,
});
export const [A, B] = [key('a'), key('b')];
export const header = (keyId: string): UnverifiedHeader => ({ keyId, algorithm: 'ES256' });

/** Nothing is wrong with the token but its key. It was issued long ago. */
export const noFault = (): number => 0;

interface Fetching {
  readonly signal: AbortSignal;
  readonly resolve: (fetched: FetchedKeys) => void;
  readonly reject: (error: Error) => void;
}

/** A key source whose fetches a test settles one by one. */
export interface RemoteSource {
  readonly keys: KeySource;
  readonly time: FakeTime;
  readonly log: RecordingLogger;
  readonly fetches: readonly Fetching[];
  /** Settles the latest fetch. */
  readonly respond: (...published: readonly VerificationKey[]) => Promise<void>;
  /** The same with a set that has unusable keys too. */
  readonly respondWith: (
    keys: readonly VerificationKey[],
    unusable: FetchedKeys['unusable'],
    ageMs?: number,
  ) => Promise<void>;
  readonly fail: (error?: Error) => Promise<void>;
  /** What becomes of a search: the key id that was found, or the reason of the refusal. */
  readonly find: (keyId: string, checkToken?: () => number) => Promise<string | undefined>;
}

export function source(options: Partial<ConstructorParameters<typeof RemoteKeys>[0]> = {}): RemoteSource {
  const time = fakeTime();
  const log = recordingLogger();
  const fetches: Fetching[] = [];
  const keys = new RemoteKeys({
    issuer: 'https://login.test',
    fetchKeys: (signal) => new Promise((resolve, reject) => void fetches.push({ signal, resolve, reject })),
    timeoutMs: 5_000,
    keysMaxAgeMs: TTL_MS,
    keysStaleMs: 3_600_000,
    clock: time.clock,
    schedule: time.schedule,
    random: () => 0.5,
    logger: log,
    ...options,
  });

  async function respondWith(
    published: readonly VerificationKey[],
    unusable: FetchedKeys['unusable'] = new Map(),
    ageMs = 0,
  ) {
    await settle();
    fetches.at(-1)?.resolve({ jwks: [], keys: published, unusable, ageMs });
    await settle();
  }
  return {
    keys,
    time,
    log,
    fetches,
    respond: (...published) => respondWith(published),
    respondWith,
    async fail(error = new Error('down')) {
      await settle();
      fetches.at(-1)?.reject(error);
      await settle();
    },
    async find(keyId, checkToken = noFault) {
      try {
        return (await keys.find(header(keyId), checkToken)).keyId;
      } catch (error) {
        return (error as AuthError).reason;
      }
    },
  };
}

/** The same with these keys fetched. */
export async function sourceWith(...published: readonly VerificationKey[]): Promise<RemoteSource> {
  const through = source();
  await through.respond(...published);
  return through;
}

/** Asks for ids that the issuer does not have: each takes a fetch of its own. */
export async function expectUnknown({ find, respond }: RemoteSource, ids = ['x', 'y'], published = [A]): Promise<void> {
  for (const id of ids) {
    const refused = find(id);
    await respond(...published);
    expect(await refused).toBe('unknown_key');
  }
}
