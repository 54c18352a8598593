import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer, RedisServerOptions } from '../support/redis-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { byIoredis, byNodeRedis, openSource, presentOldToken, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const OLD = Date.now() - 60_000;
const FLOOR = OLD + 1;
const FAST = { pollMs: 100, readTimeoutMs: 1_000 };

let ends: (() => Promise<unknown>)[];

beforeEach(() => {
  ends = [];
});

afterEach(async () => {
  for (const end of ends.reverse()) await end();
});

async function server(options?: RedisServerOptions): Promise<RedisServer> {
  const started = await startRedis(options);
  ends.push(() => started.stop());
  return started;
}

async function wireTo({ port }: RedisServer): Promise<TcpProxy & { readonly url: string }> {
  const wire = await startTcpProxy(port);
  ends.push(() => wire.close());
  return Object.assign(wire, { url: `redis://127.0.0.1:${wire.port}` });
}

describe.each([
  ['ioredis', byIoredis()],
  ['node-redis', byNodeRedis()],
])('redisGenerations with %s', (_, connect) => {
  async function open(url: string): Promise<OpenSource> {
    const opened = await openSource(connect, url, { timeoutMs: 500 });
    ends.push(() => opened.close());
    return opened;
  }

  function verifierFor(source: OpenSource['source'], options = {}): ReturnType<typeof startVerifier> {
    const verifier = startVerifier(source, { ...FAST, ...options });
    ends.push(() => verifier.close());
    return verifier;
  }

  /** A process that knows the floor, and presents a token below it for as long as the test lasts. */
  async function knowing(url: string, options = {}) {
    const { source, log } = await open(url);
    await source.publish('pos', FLOOR);
    const verifier = verifierFor(source, options);
    await verifier.ready();
    return { source, log, verifier, oldToken: presentOldToken(verifier, 'pos', OLD) };
  }

  it('killed and restarted with its append-only file: a cold process refuses all until it has read the floor', async () => {
    const redis = await server({ appendOnly: true });
    const { source, verifier, oldToken } = await knowing(redis.url);
    const { source: coldSource } = await open(redis.url);
    await redis.kill();
    await eventually('a failed read', () => verifier.status().failures > 0);
    expect(verdict(verifier, 'pos', FLOOR)).toBe('admitted');

    const cold = verifierFor(coldSource);
    await eventually('its first attempt', () => cold.status().failures > 0);
    expect(verdict(cold, 'pos', OLD)).toBe('generations_unavailable');
    expect(verdict(cold, 'pos', FLOOR)).toBe('generations_unavailable');

    await redis.start();
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('superseded');
    expect(verdict(cold, 'pos', FLOOR)).toBe('admitted');
    await eventually('a publish', () =>
      source.publish('pos', FLOOR + 1).then(
        () => true,
        () => false,
      ),
    );
    await eventually('the change', () => verdict(verifier, 'pos', FLOOR) === 'superseded');
    oldToken.expectHeld();
  });

  it('killed and restarted without a file: with `sentinel: false` a cold process accepts the old token until floors are published again', async () => {
    const redis = await server();
    const { source, verifier, oldToken, log } = await knowing(redis.url);
    await redis.kill();
    await redis.start();
    const before = verifier.status().reads;
    await eventually('fresh reads', () => verifier.status().reads > before + 1);
    expect(verdict(verifier, 'pos', FLOOR)).toBe('admitted');
    expect(log.at('warn').map(({ message }) => message)).toEqual([
      'floors are missing from Redis, those known here are kept',
    ]);

    const cold = verifierFor((await open(redis.url)).source);
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('admitted');
    await eventually('a publish', () =>
      source.publish('pos', FLOOR).then(
        () => true,
        () => false,
      ),
    );
    await eventually('the floor', () => verdict(cold, 'pos', OLD) === 'superseded');
    oldToken.expectHeld();
  });

  it('flushed: the next read notices, and with `sentinel: false` a cold process accepts the old token until floors are published again', async () => {
    const redis = await server();
    const { source, verifier, oldToken, log } = await knowing(redis.url);
    await redis.command('FLUSHALL');
    await eventually('a warning', () => log.at('warn').length > 0);
    expect(log.at('warn')[0]?.fields).toEqual({ key: 'tillgate:generations', missing: 1, left: 0 });
    expect(verdict(verifier, 'pos', FLOOR)).toBe('admitted');

    const cold = verifierFor((await open(redis.url)).source, { pollMs: 60_000 });
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('admitted');
    await source.publish('pos', FLOOR);
    await eventually('the floor, by its hint', () => verdict(cold, 'pos', OLD) === 'superseded');
    oldToken.expectHeld();
  });

  it('failed over to an empty server, with `sentinel: false`: known floors stay, and what is published there arrives, also by hints', async () => {
    const [primary, other] = [await server(), await server()];
    const wire = await wireTo(primary);
    const { source, verifier, oldToken } = await knowing(wire.url, { pollMs: 500 });
    const taken = wire.connections;
    wire.switchTo(other.port);
    await eventually('both connections', () => wire.connections >= taken + 2);
    await eventually('a publish', () =>
      source.publish('kiosk', FLOOR).then(
        () => true,
        () => false,
      ),
    );
    await eventually('the change', () => verdict(verifier, 'kiosk', OLD) === 'superseded');
    expect(verdict(verifier, 'pos', FLOOR)).toBe('admitted');

    const cold = verifierFor((await open(wire.url)).source);
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('admitted');
    expect(verdict(cold, 'kiosk', OLD)).toBe('superseded');
    oldToken.expectHeld();
  });

  it('half-open: past the bound of staleness it is 503 for all; later connections make it recover by itself', async () => {
    const redis = await server();
    const wire = await wireTo(redis);
    const { verifier, oldToken } = await knowing(wire.url, { maxStalenessMs: 1_500 });
    const direct = await open(redis.url);
    wire.freeze();
    await direct.source.publish('pos', FLOOR + 5);
    await eventually('staleness', () => verdict(verifier, 'pos', FLOOR + 5) === 'generations_unavailable');

    const cold = verifierFor((await openFrozen(wire.url)).source);
    await eventually('its first attempt', () => cold.status().failures > 0);
    expect(verdict(cold, 'pos', OLD)).toBe('generations_unavailable');

    wire.thaw();
    await eventually('recovery', () => verdict(verifier, 'pos', FLOOR + 5) === 'admitted');
    expect(verdict(verifier, 'pos', FLOOR + 4)).toBe('superseded');
    oldToken.expectHeld();
  });

  /** node-redis waits for its first connection, which does not come. */
  async function openFrozen(url: string): Promise<OpenSource> {
    const opened = await openSource(byIoredis(), url, { timeoutMs: 500 });
    ends.push(() => opened.close());
    return opened;
  }

  it('hints cut off: changes come by polling, and the subscription stands again by itself', async () => {
    const redis = await server();
    const { source, verifier, oldToken } = await knowing(redis.url);
    const subscribers = async (): Promise<number> =>
      Number(await redis.command('PUBLISH', 'tillgate:generations', 'pos'));
    expect(await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBe(1);
    await source.publish('pos', FLOOR + 1);
    await eventually('the change by polling', () => verdict(verifier, 'pos', FLOOR) === 'superseded');
    await eventually('another subscription', async () => (await subscribers()) > 0);
    oldToken.expectHeld();
  });
});
