import { START } from '../fixtures';
import { fakeSource, HEAD } from './fake';
import type { FakeSource, Script } from './fake';

/** A source on a table of so many blocks; `pages` are the replies for each range of them. */
function tableOf(
  blocks: unknown,
  pages: readonly (readonly [ids: unknown, generations: unknown])[],
  script: Script = {},
): FakeSource {
  const replies = pages.map(([ids, generations]) => {
    const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
    return [{ ids: json(ids), generations: json(generations) }];
  });
  return fakeSource({
    'SELECT pg_snapshot_xmin': [{ ...HEAD, blocks: 'true' }],
    'SELECT (pg_relation_size': [{ blocks }],
    'SELECT json_agg': () => replies.shift() ?? [],
    ...script,
  });
}

const statements = ({ pool }: FakeSource): string[] => pool.clients.flatMap(({ asked }) => asked);

describe('a whole read of a table that is one file', () => {
  it('covers its blocks in ranges without a gap, in one snapshot', async () => {
    const fake = tableOf(49, [
      [
        ['a', 'b'],
        [1, 2],
      ],
      [null, null],
      [['c'], [Number.MAX_SAFE_INTEGER]],
    ]);
    const { floors } = await fake.source.read(0);
    expect([...floors]).toEqual([
      ['a', 1],
      ['b', 2],
      ['c', Number.MAX_SAFE_INTEGER],
    ]);
    const [client] = fake.pool.clients;
    const ranges = client?.values.filter((_, at) => client.asked[at]?.startsWith('SELECT json_agg'));
    expect(ranges).toEqual([
      ['(0,0)', '(24,0)'],
      ['(24,0)', '(48,0)'],
      ['(48,0)', '(72,0)'],
    ]);
    expect(statements(fake).map((text) => text.split(' ').slice(0, 2).join(' '))).toEqual([
      ...['BEGIN TRANSACTION', 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text', 'LOCK TABLE'],
      ...['SELECT (pg_relation_size(to_regclass($1))', 'SELECT json_agg(client_id)::text'],
      ...['SELECT json_agg(client_id)::text', 'SELECT json_agg(client_id)::text', 'COMMIT'],
    ]);
  });

  it('is followed by reads of what has moved, by a cursor', async () => {
    const fake = tableOf(1, [[['a'], [1]]]);
    await fake.source.read(0);
    await fake.source.read(START);
    expect(statements(fake).filter((text) => text.startsWith('DECLARE'))).toHaveLength(1);
  });

  it('tells the horizon of the table, and neither that nor the sentinel as a floor', async () => {
    const fake = tableOf(1, [
      [
        ['', 'a', '\u0001horizon'],
        [9, 1, 7],
      ],
    ]);
    const { floors, completeFromMs } = await fake.source.read(0);
    expect([[...floors], completeFromMs]).toEqual([[['a', 1]], 7]);
  });

  it.each<[string, unknown, unknown]>([
    ['a generation beyond 2^53', ['a'], [Number.MAX_SAFE_INTEGER + 1]],
    ['a negative generation', ['a'], [-1]],
    ['a generation that is null', ['a'], [null]],
    ['an id that is null', [null], [1]],
    ['fewer generations than ids', ['a', 'b'], [1]],
    ['one list only', ['a'], null],
  ])('fails for a page with %s', async (_what, ids, generations) => {
    await expect(tableOf(1, [[ids, generations]]).source.read(0)).rejects.toThrow();
  });

  it.each([undefined, '3', null])('fails when the size of the table is %p', async (blocks) => {
    await expect(tableOf(blocks, []).source.read(0)).rejects.toThrow('the size of the table');
  });

  it('fails when a range cannot be read, although the one before it can', async () => {
    const script = {
      'SELECT json_agg': (values?: unknown[]) =>
        values?.[0] === '(0,0)' ? [{ ids: '["a"]', generations: '[1]' }] : new Error('gone'),
    };
    await expect(tableOf(25, [], script).source.read(0)).rejects.toThrow('PostgreSQL: Error');
  });

  it('of an empty table asks for no rows of it', async () => {
    const fake = tableOf(0, []);
    expect([...(await fake.source.read(0)).floors]).toEqual([]);
  });
});
