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
import { byIoredis, byNodeRedis, redisStand } from './fixtures';
import type { Connect } from './fixtures';

/** Limits that a test can wait for, and a busy machine does not reach by itself. */
const SILENCE = { maxSilenceMs: 5_000, skewMs: 500, pollMs: 500 };

/** Servers and wires, and what can be started on them. */
function faultStand(connect: Connect, opened: Ends, timeoutMs = 1_000) {
  const { server, wireTo, open } = redisStand(opened);

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

  return { server, wireTo, publish, processOn };
}

describe('generations in Redis', () => {
  const alone = ends();
  afterEach(() => alone.run());

  for (const [name, connect] of [
    ['ioredis', byIoredis()],
    ['node-redis', byNodeRedis()],
  ] as const) {
    scenario(
      `a replica that is cut off from its primary counts as silent, and catches up when it is back (by ${name})`,
      async (opened) => {
        const { server, wireTo, publish, processOn } = faultStand(connect, opened);
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
