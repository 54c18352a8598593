import { hash } from 'node:crypto';
import { AuthError } from '../../../src/gate';
import type { IoredisClient } from '../../../src/stores/redis/connection';
import { redisReplayStore } from '../../../src/stores';
import { memoryReplayStore } from '../../../src/gate/possession/replay-store';
import { fakeTime } from '../../support/fake-time';
import { NOW_MS } from '../../support/issuer';
import { recordingLogger } from '../../support/log';

describe('memoryReplayStore()', () => {
  /** A store at the time 0, which a test moves on. */
  function scene(maxProofs?: number) {
    const time = fakeTime(0);
    const store = memoryReplayStore(time.clock, maxProofs);
    return { time, remember: (id: string, untilMs: number, client = 'x') => store.remember(id, untilMs, client) };
  }

  /** How many proofs a client gets remembered before it is refused. */
  function fill({ remember }: Pick<ReturnType<typeof scene>, 'remember'>, client: string, untilMs = 10): number {
    for (let count = 0; ; count++) {
      try {
        void remember(`${client} ${untilMs} ${count}`, untilMs, client);
      } catch (error) {
        expect(error).toMatchObject({ reason: 'too_many_proofs' });
        return count;
      }
    }
  }

  it('lets one client have half of it, then each others 1/128, at least one, and gives the room back when proofs end', () => {
    const store = scene(12);
    const filled = [fill(store, 'a'), fill(store, 'b', 20), fill(store, 'c', 30), fill(store, 'a', 11)];
    expect(filled).toEqual([6, 1, 1, 0]);
    store.time.step(10);
    expect([fill(store, 'a', 40), fill(store, 'd', 40)]).toEqual([4, 1]);
  });

  it.each([
    ['one after another', 1_000],
    ['in turns', 1],
    ['some at a time', 37],
  ])('has room for a 65th client when 64 hold all they may: filled %s', (_how, proofsPerTurn) => {
    const store = scene(1_280);
    const sent = new Map<string, number>();
    const clients = Array.from({ length: 64 }, (_, index) => `client ${index}`);
    for (let isFilling = true; isFilling;) {
      isFilling = false;
      for (const client of clients) {
        for (let turn = 0; turn < proofsPerTurn; turn++) {
          const count = (sent.get(client) ?? 0) + 1;
          try {
            void store.remember(`${client} ${count}`, 10, client);
          } catch {
            break;
          }
          sent.set(client, count);
          isFilling = true;
        }
      }
    }
    expect(fill(store, 'client 64')).toBe(10);
  });

  it('has room for a 65th client also where proofs end meanwhile', () => {
    const store = scene(1_280);
    for (let round = 0; round < 40; round++) {
      for (let index = 0; index < 64; index++)
        fill(store, `client ${(index * 7 + round) % 64}`, 10 + 10 * round + (index % 3) * 15);
      expect(store.remember(`newcomer ${round}`, 10 + 10 * round, 'newcomer')).toBe(true);
      store.time.step(10);
    }
  });

  it('warns from half on, in the log once a minute and in its status', () => {
    const time = fakeTime(0);
    const log = recordingLogger();
    const store = memoryReplayStore(time.clock, 4, log);
    const add = (id: string): unknown => store.remember(id, 100_000, id);
    add('a');
    expect([store.status(), log.entries]).toEqual([{ proofs: 1, maxProofs: 4 }, []]);
    add('b');
    add('c');
    const message = expect.stringContaining('the replay store in memory is half full');
    expect(log.entries).toEqual([{ level: 'warn', fields: { proofs: 2, maxProofs: 4 }, message }]);
    expect(store.status()).toEqual({ proofs: 3, maxProofs: 4, warning: message });
    time.step(60_000);
    add('d');
    expect(log.entries.at(-1)?.fields).toEqual({ proofs: 4, maxProofs: 4 });
    time.step(40_000);
    expect([store.status(), log.entries.length]).toEqual([{ proofs: 0, maxProofs: 4 }, 2]);
  });

  it('refuses what is new when it is full, and has room again when proofs end', () => {
    const { time, remember } = scene(2);
    expect([remember('a', 10), remember('b', 20, 'y'), remember('a', 10)]).toEqual([true, true, false]);
    expect(() => remember('c', 30, 'z')).toThrow(new AuthError('too_many_proofs'));
    time.step(10);
    expect([remember('c', 30, 'z'), remember('b', 20, 'y')]).toEqual([true, false]);
  });

  it('does not take an ended proof for new after the clock stepped back, whichever ended first', () => {
    const { time, remember } = scene();
    void remember('late', 30);
    void remember('early', 10);
    time.step(30);
    void remember('b', 60);
    time.step(-25);
    expect([remember('late', 30), remember('early', 10), remember('c', 31)]).toEqual([false, false, true]);
  });
});

describe('redisReplayStore()', () => {
  /** A client of ioredis whose server answers with `reply`. */
  function fakeClient(reply: () => unknown): { client: IoredisClient; commands: string[][] } {
    const commands: string[][] = [];
    const call = (...command: string[]) => (commands.push(command), Promise.resolve(reply()));
    return { client: { status: 'ready', call } as unknown as IoredisClient, commands };
  }

  /** Part of a key: client ids can be of any length. */
  const hashOf = (client: string): string => hash('sha256', client, 'base64url');
  const clock = (): number => NOW_MS;

  it('keeps the proofs of a client in one set, in one command', async () => {
    const { client, commands } = fakeClient(() => 1);
    const store = redisReplayStore({ client, clock });
    expect(await store.remember('a', NOW_MS + 70_000.5, 'caller')).toBe(true);
    expect(await store.remember('b', NOW_MS + 1, 'other')).toBe(true);
    const script = ['EVAL', expect.stringContaining("redis.call('ZADD'"), '1'];
    const limits = [`${NOW_MS}`, '100000', '1000'];
    expect(commands).toEqual([
      [...script, `tillgate:dpop:${hashOf('caller')}`, 'a', `${NOW_MS + 70_000.5}`, ...limits],
      [...script, `tillgate:dpop:${hashOf('other')}`, 'b', `${NOW_MS + 1}`, ...limits],
    ]);
  });

  it('says that a proof is not new when the set has it', async () => {
    const { client, commands } = fakeClient(() => 0);
    expect(await redisReplayStore({ client, clock, prefix: 'shop:' }).remember('a', NOW_MS, 'caller')).toBe(false);
    expect(commands[0]?.[3]).toBe(`shop:${hashOf('caller')}`);
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

  const PROOFS = 'option "maxProofsPerClient" must be a whole number of proofs from 1 to 9007199254740991, got 0';
  it.each([
    [{}, 'option "client" must be a client of ioredis or of redis (node-redis), got undefined'],
    [{ client: {}, prefx: 'x' }, 'unknown option "prefx"; did you mean "prefix"?'],
    [{ client: {}, maxProofsPerClient: 0 }, PROOFS],
    [{ client: {}, timeoutMs: 0 }, 'option "timeoutMs" must be a number of milliseconds from 1 to 60000, got 0'],
  ])('refuses %j', (options, message) => {
    expect(() => redisReplayStore(options as never)).toThrow(new TypeError(`redisReplayStore(): ${message}`));
  });
});
