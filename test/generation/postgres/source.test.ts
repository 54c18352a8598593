import { SourceError } from '../../../src/generation/source-error';
import { settle } from '../../support/fake-time';
import { START } from '../fixtures';
import { fakeSource, HEAD } from './fake';
import type { FakeClient } from './fake';

const never = (): Promise<never> => new Promise(() => undefined);

function failing(code: string): Error {
  return Object.assign(new Error('postgres://pos:hunter2@db said no'), { code });
}

describe('a read', () => {
  it('is one transaction with one snapshot, and gives its connection back', async () => {
    const { source, pool } = fakeSource();
    const { floors, nowMs } = await source.read(0);
    expect([...floors]).toEqual([['pos', START + 1]]);
    expect(nowMs).toBe(START);
    expect(pool.clients[0]?.asked.map((asked) => asked.split(' ', 2).join(' '))).toEqual([
      'BEGIN TRANSACTION',
      'SELECT pg_snapshot_xmin(pg_current_snapshot())::text',
      'DECLARE floors',
      'FETCH FORWARD',
      'COMMIT',
    ]);
    expect(pool.clients[0]?.released).toEqual([false]);
    expect(pool.clients[0]?.listenerCount('error')).toBe(0);
  });

  it('asks for everything at first, then from the oldest transaction that was open, or from the time', async () => {
    const { source, pool } = fakeSource();
    await source.read(0);
    await source.read(START - 60_000);
    const declared = pool.clients.map(({ asked, values }) => ({
      where: asked.find((text) => text.startsWith('DECLARE'))?.split(' WHERE ')[1],
      values: values.filter((given) => given?.includes(START - 60_000)),
    }));
    expect(declared).toEqual([
      { where: undefined, values: [] },
      {
        where:
          '(changed_in >= $1::xid8 AND changed_in < pg_snapshot_xmax(pg_current_snapshot())) OR ' +
          'changed_at >= to_timestamp($2::double precision / 1000) OR client_id = $3',
        values: [['750', START - 60_000, '\u0001horizon']],
      },
    ]);
  });

  it('asks about its table, and about the trigger that stamps it', async () => {
    const { source, pool } = fakeSource();
    await source.read(0);
    await source.sentinel?.read();
    const asked = pool.clients.flatMap((client) => client.values).filter((values) => values !== undefined);
    expect(asked).toEqual([['"tillgate_generations"', 'tillgate_stamp'], ['']]);
  });

  it('survives a connection that breaks as its last statement ends, and gives it back once', async () => {
    const { source, pool } = fakeSource({
      COMMIT: () => {
        pool.clients[0]?.emit('error', failing('57P01'));
        return [];
      },
    });
    expect([...(await source.read(0)).floors]).toHaveLength(1);
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it('is refused when the source is closed while it connects', async () => {
    const { source, pool } = fakeSource();
    let arrive = (): void => undefined;
    pool.connecting = () => new Promise((resolve) => (arrive = resolve));
    const reading = source.read(0).catch(() => undefined);
    await settle();
    await source.close();
    arrive();
    await reading;
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it.each([
    ['of a standby', { ...HEAD, standby: 'true' }, 'this server is a standby; use the URL of the primary'],
    [
      'of a table without its trigger',
      { ...HEAD, stamped: 'false' },
      'the table tillgate_generations does not exist or has no trigger tillgate_stamp; create it with createTable: true or with the SQL of postgresSchema()',
    ],
    ['without a time', { ...HEAD, now_ms: null }, 'the server did not return its time'],
    ['without a snapshot', { ...HEAD, horizon: undefined }, 'the server did not return its time'],
    ['without a row', undefined, 'this server is a standby'],
  ])('%s is refused, and its connection with it', async (_, head, message) => {
    const { source, pool } = fakeSource({ 'SELECT pg_snapshot_xmin': head ? [head] : [] });
    await expect(source.read(0)).rejects.toThrow(`PostgreSQL: ${message}`);
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it.each([
    { client_id: 'pos', generation: 5 },
    { client_id: 'pos', generation: '9007199254740992' },
    { client_id: 'pos', generation: '-1' },
    { client_id: 'pos', generation: '1e3' },
    { client_id: 'pos', generation: ' 5' },
    { client_id: 'pos', generation: '' },
    { client_id: 'pos', generation: null },
    { client_id: null, generation: '5' },
    {},
    null,
  ])('with the row %j is not complete', async (row) => {
    const { source } = fakeSource({ FETCH: [row] });
    await expect(source.read(0)).rejects.toThrow('PostgreSQL: the table has a row that is not a floor');
  });

  it.each([
    ['28P01', 'user name or password is wrong (28P01)'],
    ['42501', 'the user lacks a privilege: SELECT to read'],
    ['XX000', 'Error (XX000)'],
  ])('that fails with %s says what to do, and nothing of the message', async (code, message) => {
    const { source } = fakeSource({ BEGIN: failing(code) });
    const error: unknown = await source.read(0).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SourceError);
    expect(String(error)).toContain(`PostgreSQL: ${message}`);
    expect(String(error)).not.toContain('hunter2');
    expect((error as Error).cause).toMatchObject({ code });
  });

  it.each<[string, () => Promise<never>, string]>([
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a pool may reject with anything
    ['a text', () => Promise.reject('hunter2'), 'PostgreSQL: a thrown string'],
    [
      'a code that is not one of PostgreSQL',
      () => Promise.reject(Object.assign(new Error('x'), { code: 42 })),
      'PostgreSQL: Error',
    ],
  ])('that fails with %s says as much', async (_what, fail, message) => {
    const { source } = fakeSource({ BEGIN: fail });
    const error: unknown = await source.read(0).catch((reason: unknown) => reason);
    expect((error as Error).message).toBe(message);
  });

  it('that hangs ends after the bound, and its connection is destroyed', async () => {
    const { source, pool, time } = fakeSource({ FETCH: never() }, { timeoutMs: 2_000 });
    const reading = expect(source.read(0)).rejects.toThrow('PostgreSQL: no response within 2000 ms');
    await time.advance(1_999);
    expect(pool.clients[0]?.released).toEqual([]);
    await time.advance(1);
    await reading;
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it('gives a connection that comes too late straight back', async () => {
    const { source, pool, time } = fakeSource({}, { timeoutMs: 2_000 });
    let arrive = (): void => undefined;
    pool.connecting = () => new Promise((resolve) => (arrive = resolve));
    const reading = expect(source.read(0)).rejects.toThrow('PostgreSQL: no response within 2000 ms');
    await time.advance(2_000);
    await reading;
    arrive();
    await settle();
    expect(pool.clients.map(({ released, asked }) => ({ released, asked }))).toEqual([
      { released: [false], asked: [] },
    ]);
  });
});

describe('errors without a waiting caller', () => {
  it('of an idle connection are told, without their text', () => {
    const { pool, log } = fakeSource();
    pool.emit('error', failing('57P01'));
    expect(log.entries).toEqual([
      {
        level: 'info',
        fields: { table: 'tillgate_generations', detail: 'Error (57P01)' },
        message: 'an idle connection to PostgreSQL is lost',
      },
    ]);
  });

  it('of a pool that ends after close() end nothing else', async () => {
    const { source, pool } = fakeSource();
    await source.close();
    expect(() => pool.emit('error', failing('57P01'))).not.toThrow();
  });

  it('of a connection that is destroyed end nothing else', async () => {
    const { source, pool } = fakeSource({ BEGIN: failing('XX000') });
    await source.read(0).catch(() => undefined);
    expect(() => pool.clients[0]?.emit('error', failing('57P01'))).not.toThrow();
  });
});

describe('publish', () => {
  it.each(['a\0b', '\ud800', 'x\udc00', '\u0001horizon', 'x'.repeat(2_601)])(
    'refuses the client id %j, which the table cannot hold',
    async (id) => {
      const { source, pool } = fakeSource();
      await expect(source.publish(id, 5)).rejects.toThrow(TypeError);
      expect(pool.clients).toEqual([]);
    },
  );

  it('is one statement, which merges by max', async () => {
    const { source, pool } = fakeSource();
    await source.publish('pos', START);
    const { asked, values } = pool.clients[0] as FakeClient;
    expect(asked).toEqual([
      expect.stringMatching(
        /^INSERT INTO "tillgate_generations" AS known .* FROM unnest\(.* ORDER BY client_id COLLATE "C" ON CONFLICT \(client_id\) DO UPDATE SET generation = greatest\(known.generation, excluded.generation\)$/,
      ),
    ]);
    expect(values).toEqual([[['pos'], [START]]]);
  });

  it('creates the table once if asked to, and asks again after a failure', async () => {
    let result: Error | unknown[] = failing('42501');
    const { source, pool } = fakeSource({ 'SELECT FROM pg_class': () => result }, { createTable: true });
    await expect(source.publish('pos', 5)).rejects.toThrow('CREATE to create the table');
    result = [];
    await Promise.all([source.publish('pos', 5), source.read(0)]);
    await source.publish('pos', 6);
    const asked = pool.clients.flatMap((client) => client.asked);
    expect(asked.filter((text) => text.startsWith('CREATE TABLE "tillgate_generations"'))).toHaveLength(1);
  });
});
