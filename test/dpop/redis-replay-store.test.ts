import type { IoredisClient } from '../../src/generation/redis/connection';
import { redisReplayStore } from '../../src/dpop';
import { NOW_MS } from '../support/issuer';

/** A client of ioredis whose server answers with `reply`. */
function fakeClient(reply: () => unknown): { client: IoredisClient; commands: string[][] } {
  const commands: string[][] = [];
  const client = {
    status: 'ready',
    call: (...command: string[]) => (commands.push(command), Promise.resolve(reply())),
  };
  return { client: client as unknown as IoredisClient, commands };
}

const clock = (): number => NOW_MS;

describe('redisReplayStore()', () => {
  it('sets a key that ends a second after the proof, unless it is there', async () => {
    const { client, commands } = fakeClient(() => 'OK');
    const store = redisReplayStore({ client, clock });
    expect(await store.remember('a', NOW_MS + 70_000.5)).toBe(true);
    expect(await store.remember('b', NOW_MS - 5)).toBe(true);
    expect(commands).toEqual([
      ['SET', 'tillgate:dpop:a', '1', 'PX', '71001', 'NX'],
      ['SET', 'tillgate:dpop:b', '1', 'PX', '1001', 'NX'],
    ]);
  });

  it('says that a proof is not new when the key is there', async () => {
    const { client, commands } = fakeClient(() => null);
    expect(await redisReplayStore({ client, clock, prefix: 'shop:' }).remember('a', NOW_MS)).toBe(false);
    expect(commands[0]?.[1]).toBe('shop:a');
  });

  it.each([undefined, 0, 'QUEUED'])('rejects a reply that is neither OK nor nil: %p', async (reply) => {
    const { client } = fakeClient(() => reply);
    await expect(redisReplayStore({ client, clock }).remember('a', NOW_MS)).rejects.toThrow('Redis replied');
  });

  it('rejects when the server refuses, or does not respond in time', async () => {
    const refusing = fakeClient(() => Promise.reject(new Error('OOM command not allowed')));
    await expect(redisReplayStore({ client: refusing.client }).remember('a', 0)).rejects.toThrow('OOM');
    const silent = fakeClient(() => new Promise(() => undefined));
    let expire = (): void => undefined;
    const schedule = (task: () => void) => ((expire = task), { cancel() {} });
    const waiting = redisReplayStore({ client: silent.client, schedule, timeoutMs: 250 }).remember('a', 0);
    expire();
    await expect(waiting).rejects.toThrow('Redis did not respond within 250 ms');
  });

  it.each([
    [{}, 'option "client" must be a client of ioredis or of redis (node-redis), got undefined'],
    [{ client: {}, prefx: 'x' }, 'unknown option "prefx"; did you mean "prefix"?'],
    [{ client: {}, timeoutMs: 0 }, 'option "timeoutMs" must be a number of milliseconds from 1 to 60000, got 0'],
    [
      { client: { isCluster: true } },
      'option "client" must be connected to one server, the primary; got a client of several',
    ],
  ])('refuses %j', (options, message) => {
    expect(() => redisReplayStore(options as never)).toThrow(new TypeError(`redisReplayStore(): ${message}`));
  });
});
