import { Redis } from 'ioredis';
import {
  ends,
  presentToken,
  scenario,
  startAuthorizationServer,
  startProcess,
  unknownTo,
  untilCurrent,
  verdict,
} from '../faults/generation-scene';
import type { Ends } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, redisStand, snapshotOf } from './fixtures';
import type { Connect } from './fixtures';

const KEY = 'tillgate:generations';
/** Limits that a test can wait for, and a busy machine does not reach by itself. */
const SILENCE = { maxSilenceMs: 5_000, skewMs: 500, pollMs: 500 };

const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** Servers and wires, and what can be started on them. */
function faultStand(connect: Connect, opened: Ends, timeoutMs = 1_000) {
  const { server, wireTo, open } = redisStand(opened);

  /** The state of the log; the returned function puts it back. */
  async function snapshot(redis: RedisServer): Promise<() => Promise<void>> {
    const admin = new Redis(redis.url);
    opened.add(() => admin.disconnect());
    return snapshotOf(admin, KEY);
  }

  async function publish(url: string, record?: Map<string, number>) {
    const started = startAuthorizationServer(await open(connect, url, timeoutMs), {
      timeoutMs,
      ...(record && { record }),
    });
    opened.add(() => started.publisher.close());
    await started.publisher.ready();
    return started;
  }

  async function processOn(url: string, options = {}) {
    const follower = startProcess(await open(connect, url, timeoutMs), { readTimeoutMs: timeoutMs, ...options });
    opened.add(() => follower.close());
    return follower;
  }

  return { server, wireTo, snapshot, publish, processOn };
}

describe('generations in Redis', () => {
  const alone = ends();
  afterEach(() => alone.run());

  for (const [name, connect] of [
    ['ioredis', byIoredis()],
    ['node-redis', byNodeRedis()],
  ] as const) {
    const fault = (what: string, run: (stand: ReturnType<typeof faultStand>) => Promise<void>): void =>
      scenario(`${what} (by ${name})`, (opened) => run(faultStand(connect, opened)));

    fault(
      'publisher cut off from Redis: it says so, and after maxSilenceMs no process accepts the discarded token',
      async ({ server, wireTo, publish, processOn }) => {
        const redis = await server();
        const wire = await wireTo(redis);
        const shop = await publish(wire.url);
        await shop.change('pos');
        const running = await processOn(redis.url, SILENCE);
        await untilCurrent(running, shop.record);
        const before = shop.record.get('pos') ?? 0;

        wire.freeze();
        const cutMs = Date.now();
        expect(await shop.change('pos')).toBe(false);
        expect(shop.publisher.status()).toMatchObject({ pending: 1 });
        const old = presentToken(running, 'pos', before);
        const cold = await processOn(redis.url, SILENCE);
        const coldOld = presentToken(cold, 'pos', before);
        await eventually('both refuse', () => old.turns.length === 2 && running.status().source === 'silent');
        expect((old.turns[0]?.untilMs ?? Infinity) - cutMs).toBeLessThan(SILENCE.maxSilenceMs + SILENCE.skewMs + 500);
        await cold.settled();
        await eventually('the new process knows why', () => cold.status().source === 'silent');

        wire.thaw();
        await untilCurrent(running, shop.record);
        await untilCurrent(cold, shop.record);
        expect(old.stop()).toEqual(['accepted', 'generations_unavailable', 'superseded']);
        expect(coldOld.stop()).toEqual(['generations_unavailable', 'superseded']);
      },
    );

    fault(
      'rolled back to a state of the same second: the publisher appends what is lost',
      async ({ server, snapshot, publish, processOn }) => {
        const redis = await server();
        const shop = await publish(redis.url);
        for (let n = 0; n < 6; n++) {
          await eventually('the publisher has repaired the log', () => shop.publisher.status().state === 'current');
          const restore = await snapshot(redis);
          expect(await shop.change(`client-${n}`)).toBe(true);
          await restore();
          await eventually('the publisher has noticed', () => shop.publisher.status().state !== 'current');
        }
        await untilCurrent(await processOn(redis.url), shop.record);
      },
    );

    fault(
      'restored from an older dump while the publisher is down: a process that starts refuses until it is back',
      async ({ server, snapshot, publish, processOn }) => {
        const redis = await server();
        const record = new Map<string, number>();
        const shop = await publish(redis.url, record);
        await shop.change('pos');
        const restore = await snapshot(redis);
        const before = record.get('pos') ?? 0;
        await shop.change('pos');
        const running = await processOn(redis.url);
        await untilCurrent(running, record);
        const known = presentToken(running, 'pos', before);
        shop.publisher.close();
        await restore();
        await pause(SILENCE.maxSilenceMs);

        const cold = await processOn(redis.url, SILENCE);
        const old = presentToken(cold, 'pos', before);
        await eventually('the new process knows why', () => cold.status().source === 'silent');
        await publish(redis.url, record);
        await untilCurrent(cold, record);
        expect(old.stop()).toEqual(['generations_unavailable', 'superseded']);
        expect(known.stop()).toEqual(['superseded']);
      },
    );

    fault(
      'down for longer than maxStalenessMs: a change of that time is not accepted again afterwards',
      async ({ server, publish, processOn }) => {
        const redis = await server({ appendOnly: true });
        const shop = await publish(redis.url);
        await shop.change('pos');
        const before = shop.record.get('pos') ?? 0;
        const running = await processOn(redis.url, { maxStalenessMs: 1_000, pollMs: 200 });
        await untilCurrent(running, shop.record);
        const old = presentToken(running, 'pos', before);
        await redis.kill();
        expect(await shop.change('pos')).toBe(false);
        await eventually('staleness', () => running.status().source === 'stale');
        await redis.start();
        await untilCurrent(running, shop.record);
        expect(old.stop()).toEqual(['accepted', 'generations_unavailable', 'superseded']);
      },
    );

    fault(
      'a replica that is cut off from its primary counts as silent, and catches up when it is back',
      async ({ server, wireTo, publish, processOn }) => {
        const primary = await server();
        const wire = await wireTo(primary);
        const replica = await server({ replicaOf: wire.port, settings: ['--repl-timeout', '2'] });
        const shop = await publish(primary.url);
        await shop.change('pos');
        const before = shop.record.get('pos') ?? 0;
        const running = await processOn(replica.url, SILENCE);
        await untilCurrent(running, shop.record);
        const old = presentToken(running, 'pos', before);
        wire.freeze();
        expect(await shop.change('pos')).toBe(true);
        await eventually('silence', () => running.status().source === 'silent');
        wire.thaw();
        await untilCurrent(running, shop.record);
        expect(old.stop()).toEqual(['accepted', 'generations_unavailable', 'superseded']);
      },
    );

    // Alone, and patient: on a machine that stalls, its publisher would begin an epoch, which is read as a whole.
    it(`a cut connection costs what moved meanwhile, not the whole log (by ${name})`, async () => {
      const { server, wireTo, publish, processOn } = faultStand(connect, alone, 30_000);
      const redis = await server();
      const wire = await wireTo(redis);
      const record = new Map(Array.from({ length: 20_000 }, (_each, n) => [`client-${n}`, Date.now() - n]));
      const shop = await publish(redis.url, record);
      const running = await processOn(wire.url);
      await running.ready();
      expect(unknownTo(running, record)).toEqual([]);
      const sent = async (): Promise<number> =>
        Number(/total_net_output_bytes:(\d+)/.exec(String(await redis.command('INFO', 'stats')))?.[1]);
      const [bytes, { connections }] = [await sent(), wire];
      wire.cut();
      await shop.change('client-7');
      await eventually('another connection', () => wire.connections > connections);
      const before = (record.get('client-7') as number) - 1;
      await eventually('the change', () => verdict(running, 'client-7', before) === 'superseded');
      expect(unknownTo(running, record)).toEqual([]);
      expect((await sent()) - bytes).toBeLessThan(50_000);
    });
  }
});
