import { SourceError } from '../../../src/generation/log';
import { settle } from '../../support/fake-time';
import { fakeSource, found } from './fake';
import type { FakePool, Script } from './fake';

const never = (): Promise<never> => new Promise(() => undefined);

function failing(code: string): Error {
  return Object.assign(new Error('postgres://pos:hunter2@db said no'), { code });
}

function readsOf(pool: FakePool): number {
  return pool.clients.flatMap(({ asked }) => asked).filter((asked) => asked.includes('json_build_object')).length;
}

/** A batch that is full, and what follows it. */
function largeLog(): Script {
  const mark = { epoch: 'one', unit: 7, completeMs: 5, keptMs: 6 };
  const clientIds = Array.from({ length: 2_000 }, (_, index) => `client-${index}`);
  const full = { clientIds, generations: clientIds.map((_, index) => index), last: ['2000', 'an id'], mark };
  return { json_build_object: (values) => found(values?.[0] === null ? full : { mark }) };
}

describe('a reader', () => {
  it('returns the mark with the end of the log only: what follows a full batch was appended before it', async () => {
    const { source, pool } = fakeSource(largeLog());
    const reader = source.reader();
    const first = await reader.next(60_000);
    expect([first.changes.length, first.changes[1_999], first.mark, first.end]).toEqual([
      2_000,
      ['client-1999', 1_999],
      undefined,
      false,
    ]);
    // It does not wait in between.
    const second = await reader.next(60_000);
    expect(second).toEqual({ changes: [], end: true, mark: { epoch: 'one', unit: 7, completeMs: 5, keptMs: 6 } });
    expect([pool.clients.length, readsOf(pool)]).toEqual([1, 2]);
  });

  it('waits for a notification or its time, then reads once', async () => {
    const { source, pool, time } = fakeSource();
    const reader = source.reader();
    await reader.next(0);
    let returned = 0;
    const next = (): void => void reader.next(5_000).then(() => returned++);
    next();
    await time.advance(4_999);
    expect([returned, readsOf(pool)]).toEqual([0, 1]);
    await time.advance(1);
    expect([returned, readsOf(pool)]).toEqual([1, 2]);
    next();
    await time.advance(1);
    pool.clients[0]?.emit('notification', { channel: 'tillgate_generations' });
    await settle();
    expect([returned, readsOf(pool), time.pending]).toEqual([2, 3, 0]);
    // What was notified between two calls is read immediately.
    pool.clients[0]?.emit('notification', { channel: 'tillgate_generations' });
    next();
    await settle();
    expect([returned, readsOf(pool)]).toEqual([3, 4]);
  });

  it('goes on by polling where LISTEN has no effect, and says so once', async () => {
    const { source, pool, time, log } = fakeSource({ pg_listening_channels: [] });
    const reader = source.reader();
    await reader.next(0);
    pool.clients[0]?.emit('error', failing('57P01'));
    await expect(reader.next(0)).rejects.toThrow('PostgreSQL: the server has ended the connection (57P01)');
    await reader.next(0);
    const polled = reader.next(5_000);
    await time.advance(5_000);
    expect((await polled).end).toBe(true);
    const detail = 'connect without the pooler, or with session pooling';
    expect(log.at('warn').map(({ fields, message }) => [fields, message])).toEqual([
      [{ table: 'tillgate_generations', detail }, 'LISTEN has no effect, so changes are found by polling only'],
    ]);
  });

  it('ends its wait when its connection is lost, and opens another one for the next call', async () => {
    const { source, pool } = fakeSource();
    const reader = source.reader();
    await reader.next(0);
    const waiting = reader.next(60_000);
    await settle();
    pool.clients[0]?.emit('error', failing('57P01'));
    await expect(waiting).rejects.toThrow('PostgreSQL: the server has ended the connection (57P01)');
    await reader.next(60_000);
    expect(pool.clients.map(({ released }) => released)).toEqual([[true], []]);
  });

  it('destroys a connection that does not respond', async () => {
    const { source, pool, time } = fakeSource({ json_build_object: never });
    const reading = source.reader().next(0);
    const outcome = expect(reading).rejects.toThrow('PostgreSQL: no response within 5000 ms');
    await time.advance(5_000);
    await outcome;
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it.each(['reader', 'source'] as const)(
    'leaves no connection when its %s is closed while it connects',
    async (what) => {
      const { source, pool } = fakeSource();
      let arrive = (): void => undefined;
      pool.connecting = () => new Promise((resolve) => (arrive = resolve));
      const reader = source.reader();
      const outcome = expect(reader.next(0)).rejects.toThrow(SourceError);
      await settle();
      if (what === 'reader') reader.close();
      else await source.close?.();
      arrive();
      await outcome;
      expect(pool.clients[0]?.released).toEqual([true]);
    },
  );

  it('gives a connection that arrives too late back to the pool', async () => {
    const { source, pool, time } = fakeSource();
    let arrive = (): void => undefined;
    pool.connecting = () => new Promise((resolve) => (arrive = resolve));
    const outcome = expect(source.reader().next(0)).rejects.toThrow('PostgreSQL: no response within 5000 ms');
    await time.advance(5_000);
    await outcome;
    arrive();
    await settle();
    expect(pool.clients[0]?.released).toEqual([false]);
  });

  it.each([
    ['28P01', 'user name or password is wrong (28P01)'],
    ['42501', 'the user lacks a privilege: SELECT to read'],
    ['XX000', 'Error (XX000)'],
  ])('that fails with %s says what to do, and nothing of the message', async (code, message) => {
    const { source } = fakeSource({ json_build_object: failing(code) });
    const error: unknown = await source
      .reader()
      .next(0)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SourceError);
    expect(String(error)).toContain(`PostgreSQL: ${message}`);
    expect(String(error)).not.toContain('hunter2');
  });
});

describe('append', () => {
  it('gives its connection back, without listeners', async () => {
    const { source, pool } = fakeSource();
    await source.append([['pos', 5]]);
    const [client] = pool.clients;
    expect([client?.released, client?.listenerCount('error'), client?.listenerCount('notification')]).toEqual([
      [false],
      0,
      0,
    ]);
  });

  it('destroys it after a failure', async () => {
    const { source, pool } = fakeSource({ INSERT: failing('57014') });
    await expect(source.append([['pos', 5]])).rejects.toThrow('PostgreSQL: Error (57014)');
    expect(pool.clients[0]?.released).toEqual([true]);
  });
});
