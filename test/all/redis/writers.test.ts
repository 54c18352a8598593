import { Redis } from 'ioredis';
import { redisGenerations } from '../../../src/generation';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { startTcpProxy } from '../support/tcp-proxy';
import { byIoredis, openSource, presentOldToken, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const KEY = 'tillgate:generations';

let redis: RedisServer;
let ends: (() => Promise<unknown>)[];

beforeAll(async () => {
  redis = await startRedis({ appendOnly: true });
});

beforeEach(async () => {
  await redis.command('FLUSHALL');
  ends = [];
});

afterEach(async () => {
  for (const end of ends.reverse()) await end();
});

afterAll(() => redis.stop());

async function open(options = {}): Promise<OpenSource> {
  const opened = await openSource(byIoredis(), redis.url, options);
  ends.push(() => opened.close());
  return opened;
}

function verifierFor(source: OpenSource['source'], options = {}): ReturnType<typeof startVerifier> {
  const verifier = startVerifier(source, options);
  ends.push(() => verifier.close());
  return verifier;
}

describe('writers whose clocks are 30 s apart', () => {
  it('both reach a process that is up to date, by hints and by polling', async () => {
    const [now, slow] = [Date.now() + 30_000, Date.now() - 30_000];
    const [byHints, { source: writer }] = [await open(), await open()];
    const withoutHints = { ...byHints.source, watch: undefined } as unknown as OpenSource['source'];
    const verifiers = [verifierFor(byHints.source), verifierFor(withoutHints, { pollMs: 100 })];
    for (const verifier of verifiers) await verifier.ready();
    await writer.publish('pos', now);
    for (const verifier of verifiers)
      await eventually('the fast one', () => verdict(verifier, 'pos', now - 1) === 'superseded');
    await writer.publish('kiosk', slow);
    for (const verifier of verifiers) {
      await eventually('the slow one', () => verdict(verifier, 'kiosk', slow - 1) === 'superseded');
      expect(verdict(verifier, 'kiosk', slow)).toBe('admitted');
    }
  });

  it('cannot lower the floor of a client: the slow one changes nothing, for cold processes neither', async () => {
    const [fast, slow] = [Date.now() + 30_000, Date.now() - 30_000];
    const { source } = await open();
    await source.publish('pos', fast);
    const verifier = verifierFor(source);
    await verifier.ready();
    const oldToken = presentOldToken(verifier, 'pos', fast - 1);
    await source.publish('pos', slow);
    const cold = verifierFor((await open()).source);
    await cold.ready();
    expect(verdict(cold, 'pos', fast - 1)).toBe('superseded');
    oldToken.expectHeld();
  });
});

describe('the documented record', () => {
  const FLOOR = Date.now() - 3_600_000;

  it('ZADD and PUBLISH reach a process by the hint, however old the number is', async () => {
    const verifier = verifierFor((await open()).source);
    await verifier.ready();
    await redis.command('ZADD', KEY, 'GT', String(FLOOR), 'pos');
    await redis.command('PUBLISH', KEY, 'pos');
    await eventually('the floor', () => verdict(verifier, 'pos', FLOOR - 1) === 'superseded');
  });

  it('ZADD alone, its PUBLISH forgotten, is found with the next read of the whole set', async () => {
    const verifier = verifierFor((await open({ wholeEveryMs: 1_000 })).source, { pollMs: 100 });
    await verifier.ready();
    await redis.command('ZADD', KEY, 'GT', String(FLOOR), 'pos');
    await eventually('the floor', () => verdict(verifier, 'pos', FLOOR - 1) === 'superseded');
  });
});

describe('a subscription that is half-open', () => {
  it('costs a read one second, hides no change, and is opened again by itself', async () => {
    const wire = await startTcpProxy(redis.port);
    ends.push(() => wire.close());
    const client = new Redis(redis.url);
    ends.push(() => Promise.resolve(client.disconnect()));
    // The commands go directly; only what is subscribed goes through the wire.
    client.duplicate = () => new Redis(wire.port, '127.0.0.1');
    const source = redisGenerations({ client, sentinel: false, logger: recordingLogger() });
    ends.push(() => source.close());
    const verifier = verifierFor(source, { pollMs: 200, readTimeoutMs: 3_000 });
    await verifier.ready();
    const taken = wire.connections;
    const floor = Date.now();

    wire.freeze();
    await source.publish('pos', floor);
    await eventually('the change', () => verdict(verifier, 'pos', floor - 1) === 'superseded');
    expect(verifier.status().failures).toBe(0);
    wire.thaw();
    await eventually('another subscription', () => wire.connections > taken);
    const hinted = new Promise((resolve) => void source.watch(() => resolve(true)));
    await eventually('a hint', async () => {
      await source.publish('pos', floor + 1);
      return Promise.race([hinted, Promise.resolve(false)]);
    });
  });
});

/** `CHANGES=100000 npm run test:all -- redis/writers` takes a few minutes. */
const CHANGES = Number(process.env['CHANGES'] ?? 10_000);

describe(`${CHANGES} changes, each published until it resolves, with the server killed again and again`, () => {
  it('are all known to a process that was there, and to a cold one', async () => {
    const { source: writer } = await open({ timeoutMs: 1_000 });
    const { source } = await open({ timeoutMs: 1_000 });
    const verifier = verifierFor(source, { pollMs: 500, readTimeoutMs: 3_000 });
    await verifier.ready();
    const base = Date.now();
    for (let start = 0; start < CHANGES; start += 500) {
      const batch = Array.from({ length: 500 }, (_, n) =>
        publishUntilDone(writer, `client-${start + n}`, base + start + n),
      );
      if (start % 2_500 === 0) {
        await redis.kill();
        await redis.start();
      }
      await Promise.all(batch);
    }
    const cold = verifierFor((await open()).source);
    await cold.ready();
    await eventually('all floors', () => verifier.status().floors === CHANGES);
    for (let n = 0; n < CHANGES; n++) {
      expect(verdict(verifier, `client-${n}`, base + n - 1)).toBe('superseded');
      expect(verdict(cold, `client-${n}`, base + n - 1)).toBe('superseded');
    }
  });
});

async function publishUntilDone(source: OpenSource['source'], clientId: string, generation: number): Promise<void> {
  await eventually(`publish of ${clientId}`, () =>
    source.publish(clientId, generation).then(
      () => true,
      () => false,
    ),
  );
}
