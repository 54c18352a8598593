import { authenticate } from '../../../../src/gate';
import type { KeyStore } from '../../../../src/gate';
import { eventually, keyServer } from '../../../support/key-server';
import type { KeyServer } from '../../../support/key-server';
import { testKey } from '../../../support/keys';
import { recordingLogger } from '../../../support/log';
import { gateAt, STALE_MS, TTL_MS } from '../../../support/remote-gate';
import type { RemoteGate } from '../../../support/remote-gate';

const [OLD, NEW] = [testKey('ES256', 'old'), testKey('ES256', 'new')];

interface Kept {
  readonly fetchedAtMs: number;
  readonly [member: string]: unknown;
}

/** A store in memory, whose one record a test can change. */
function memoryStore(): KeyStore & { record: string | undefined; change(members: object): void } {
  return {
    record: undefined,
    load() {
      return Promise.resolve(this.record);
    },
    save(_issuer, record) {
      this.record = record;
      return Promise.resolve();
    },
    change(members) {
      this.record = JSON.stringify({ ...(JSON.parse(this.record ?? '{}') as Kept), ...members });
    },
  };
}

/** An issuer whose key set one process has kept; from here on it is down. */
async function keptAndDown(store = memoryStore()): Promise<{ server: KeyServer; store: typeof store }> {
  const server = await keyServer(OLD);
  const first = gateAt(server, { keyStore: store });
  await first.gate.ready();
  await eventually(() => store.record !== undefined);
  await first.stop();
  return { server, store };
}

const gates: RemoteGate[] = [];
function start(server: KeyServer, options: Parameters<typeof gateAt>[1]): RemoteGate {
  const gate = gateAt(server, options);
  gates.push(gate);
  return gate;
}
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.stop()));
});

describe('a process that starts while the issuer is down', () => {
  it('refuses with 503 without a key store, and serves with the kept keys with one', async () => {
    const { server, store } = await keptAndDown();
    expect(await start(server, {}).statusWith(OLD)).toBe(503);
    const log = recordingLogger();
    const second = start(server, { keyStore: store, logger: log });
    await second.gate.ready();
    expect(await second.statusWith(OLD)).toBe(200);
    expect(await second.statusWith(NEW)).toBe(503);
    expect(log.entries).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'the kept key set of an earlier process serves until the issuer responds',
      }),
    );
  });

  it.each([
    [TTL_MS + STALE_MS - 1, 200],
    [TTL_MS + STALE_MS, 503],
    [-1, 503],
  ])('counts the age of the keys from their fetch: %i ms later the response is %i', async (ageMs, status) => {
    const { server, store } = await keptAndDown();
    const { fetchedAtMs } = JSON.parse(store.record ?? '') as Kept;
    store.change({ fetchedAtMs: fetchedAtMs - ageMs });
    expect(await start(server, { keyStore: store }).statusWith(OLD)).toBe(status);
  });

  it.each([
    ['of another issuer', { issuer: 'https://other.test' }, 'the record is of another issuer'],
    ['from another jwksUri', { jwksUri: 'https://other.test/jwks' }, 'the record is from another jwksUri'],
    ['of a later version', { format: 2 }, 'the record has format 2, expected 1'],
    ['without a time', { fetchedAtMs: '0' }, 'the record is broken'],
    ['without keys', { keys: {} }, 'the record is broken'],
  ])('refuses a record %s, and says so', async (_what, members, detail) => {
    const { server, store } = await keptAndDown();
    store.change(members);
    const log = recordingLogger();
    expect(await start(server, { keyStore: store, logger: log }).statusWith(OLD)).toBe(503);
    expect(log.entries).toContainEqual(
      expect.objectContaining({ fields: { issuer: server.origin, detail }, message: 'the kept key set is not used' }),
    );
  });

  it('refuses a torn record, a private key in it, and a store that rejects', async () => {
    const { server, store } = await keptAndDown();
    const whole = store.record ?? '';
    store.record = whole.slice(0, -1);
    expect(await start(server, { keyStore: store }).statusWith(OLD)).toBe(503);
    store.record = whole;
    store.change({ keys: [OLD.privateKey.export({ format: 'jwk' })] });
    expect(await start(server, { keyStore: store }).statusWith(OLD)).toBe(503);
    const failing = { ...store, load: () => Promise.reject(new Error('secret of the store')) };
    const log = recordingLogger();
    expect(await start(server, { keyStore: failing, logger: log }).statusWith(OLD)).toBe(503);
    expect(JSON.stringify(log.entries)).not.toContain('secret of the store');
  });

  it('waits for a store that does not respond for 2 s, then goes on without it', async () => {
    const { server, store } = await keptAndDown();
    const silent = { ...store, load: () => new Promise<never>(() => undefined) };
    const gate = start(server, { keyStore: silent });
    const status = gate.statusWith(OLD);
    for (let passed = 0; passed < 2_000; passed += 100) await gate.time.advance(100);
    expect(await status).toBe(503);
  });
});

describe('a key that was removed', () => {
  it('does not come back from the store once the issuer has responded', async () => {
    const { server, store } = await keptAndDown();
    server.publish(NEW);
    await server.start();
    let release = (): void => undefined;
    const slow = {
      ...store,
      load: () => new Promise<string | undefined>((resolve) => (release = () => resolve(store.record))),
    };
    const gate = start(server, { keyStore: slow });
    await eventually(() => gate.gate.status().ready);
    release();
    expect(await gate.statusWith(NEW)).toBe(200);
    expect(await gate.statusWith(OLD)).toBe(401);
  });
});

it.each(['', 'keys', false, {}, { load() {} }])('is refused as an option: %j', (keyStore) => {
  expect(() => authenticate({ issuer: 'https://login.test', audience: 'a', keyStore } as never)).toThrow(
    'authenticate(): option "keyStore" must be an object with the functions load and save',
  );
});
