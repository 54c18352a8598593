import { settle } from '../../support/fake-time';
import { START } from '../fixtures';
import { fakeSource } from './fake';

/** Rows of a table, page by page. */
function pages(count: number): () => unknown[] {
  const rows = Array.from({ length: count }, (_, n) => ({ client_id: `c${n}`, generation: '5' }));
  return () => rows.splice(0, 2_000);
}

describe('a read of a table', () => {
  it('fetches page by page', async () => {
    const { source } = fakeSource({ FETCH: pages(2_001) });
    expect([...(await source.read(0)).floors]).toHaveLength(2_001);
  });

  it('hands over each page while the next one is fetched, and keeps none', async () => {
    const fetch = pages(4_500);
    const events: string[] = [];
    const { source } = fakeSource({
      FETCH: () => {
        events.push('fetch');
        return fetch();
      },
    });
    const { floors } = await source.read(0, async (page) => {
      events.push(`take ${[...page].length}`);
      await settle();
      events.push('taken');
    });
    expect([...floors]).toEqual([]);
    expect(events).toEqual([
      'fetch',
      ...['fetch', 'take 2000', 'taken'],
      ...['fetch', 'take 2000', 'taken'],
      ...['take 500', 'taken'],
    ]);
  });

  it('fails when a page cannot be taken, and its connection is not used again', async () => {
    const { source, pool } = fakeSource({ FETCH: pages(4_500) });
    await expect(source.read(0, () => Promise.reject(new Error('closed')))).rejects.toThrow('closed');
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it('resumes a second before it, whatever the overlap: transactions tell what is new', async () => {
    expect(await fakeSource().source.read(0)).toMatchObject({ nowMs: START, resumeMs: START - 1_000 });
  });

  it('tells the horizon of the table, which is not a floor', async () => {
    const rows = [
      { client_id: 'pos', generation: '1800000000001' },
      { client_id: '\u0001horizon', generation: '1799900000000' },
      { client_id: '', generation: '1800000000002' },
    ];
    const whole = await fakeSource({ FETCH: rows }).source.read(0);
    expect([[...whole.floors], whole.completeFromMs]).toEqual([[['pos', START + 1]], 1_799_900_000_000]);
    expect(await fakeSource().source.read(0)).not.toHaveProperty('completeFromMs');
  });
});
