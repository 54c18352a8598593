import { hash } from 'node:crypto';
import type { IoredisClient } from '../../../src/gate/generation/redis/connection';
import { redisReplayStore } from '../../../src/gate/possession';
import { NOW_MS } from '../../support/issuer';

/** A client of ioredis whose server answers with `reply`. */
function fakeClient(reply: () => unknown): { client: IoredisClient; commands: string[][] } {
  const commands: string[][] = [];
  const client = {
    status: 'ready',
    call: (...command: string[]) => (commands.push(command), Promise.resolve(reply())),
  };
  return { client: client as unknown as IoredisClient, commands };
}

/** Part of a key: client ids can be of any length. */
const CALLER = hash('sha256', 'caller', 'base64url');
const clock = (): number => NOW_MS;

describe('redisReplayStore()', () => {
  it('keeps the proofs of a client in one set, in one command', async () => {
    const { client, commands } = fakeClient(() => 1);
    const store = redisReplayStore({ client, clock });
    expect(await store.remember('a', NOW_MS + 70_000.5, 'caller')).toBe(true);
    expect(await store.remember('b', NOW_MS + 1, 'other')).toBe(true);
    const script = expect.stringContaining("redis.call('ZADD'");
    expect(commands).toEqual([
      ['EVAL', script, '1', `tillgate:dpop:${CALLER}`, 'a', `${NOW_MS + 70_000.5}`, `${NOW_MS}`, '100000', '1000'],
      [
        'EVAL',
        script,
        '1',
        `tillgate:dpop:${hash('sha256', 'other', 'base64url')}`,
        'b',
        `${NOW_MS + 1}`,
        `${NOW_MS}`,
        '100000',
        '1000',
      ],
    ]);
  });

  it('says that a proof is not new when the set has it', async () => {
    const { client, commands } = fakeClient(() => 0);
    expect(await redisReplayStore({ client, clock, prefix: 'shop:' }).remember('a', NOW_MS, 'caller')).toBe(false);
    expect(commands[0]?.[3]).toBe(`shop:${CALLER}`);
  });

  it('rejects when the client has used its share', async () => {
    const { client } = fakeClient(() => -1);
    const store = redisReplayStore({ client, clock, maxProofsPerClient: 7 });
    await expect(store.remember('a', NOW_MS, 'caller')).rejects.toMatchObject({ reason: 'too_many_proofs' });
  });

  it.each([undefined, null, 2, 'OK', 'QUEUED'])('rejects any other reply: %p', async (reply) => {
    const { client } = fakeClient(() => reply);
    await expect(redisReplayStore({ client, clock }).remember('a', NOW_MS, 'caller')).rejects.toThrow('Redis replied');
  });

  it('rejects when the server refuses, or does not respond in time', async () => {
    const refusing = fakeClient(() => Promise.reject(new Error('OOM command not allowed')));
    await expect(redisReplayStore({ client: refusing.client }).remember('a', 0, 'caller')).rejects.toThrow('OOM');
    const silent = fakeClient(() => new Promise(() => undefined));
    let expire = (): void => undefined;
    const schedule = (task: () => void) => ((expire = task), { cancel() {} });
    const waiting = redisReplayStore({ client: silent.client, schedule, timeoutMs: 250 }).remember('a', 0, 'caller');
    expire();
    await expect(waiting).rejects.toThrow('Redis did not respond within 250 ms');
  });

  it.each([
    [{}, 'option "client" must be a client of ioredis or of redis (node-redis), got undefined'],
    [{ client: {}, prefx: 'x' }, 'unknown option "prefx"; did you mean "prefix"?'],
    [
      { client: {}, maxProofsPerClient: 0 },
      'option "maxProofsPerClient" must be a whole number of proofs from 1 to 9007199254740991, got 0',
    ],
    [{ client: {}, timeoutMs: 0 }, 'option "timeoutMs" must be a number of milliseconds from 1 to 60000, got 0'],
  ])('refuses %j', (options, message) => {
    expect(() => redisReplayStore(options as never)).toThrow(new TypeError(`redisReplayStore(): ${message}`));
  });
});
