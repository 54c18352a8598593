import { START } from '../fixtures';
import { fakeSource, HEAD } from './fake';

describe('a server with another history', () => {
  const head = (horizon: string, nowMs: number) => ({ ...HEAD, horizon, now_ms: String(nowMs) });

  /** Reads from these times, while the server says this about itself; returns the transaction asked from. */
  async function from(...reads: readonly (readonly [head: object, sinceMs: number])[]): Promise<unknown[]> {
    const heads = reads.map(([one]) => one);
    const { source, pool } = fakeSource({ 'SELECT pg_snapshot_xmin': () => [heads.shift()] });
    for (const [, sinceMs] of reads) await source.read(sinceMs);
    return pool.clients.map(({ asked, values }) => values[asked.findIndex((text) => text.startsWith('DECLARE'))]?.[0]);
  }

  it('is read whole: its transaction numbers have fallen', async () => {
    expect(await from([head('750', START), 0], [head('100', START + 5_000), START - 60_000])).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('is not compared with what was known of the other one', async () => {
    const reads = [
      [head('750', START), 0],
      [head('100', START - 10_000), START - 60_000],
      [head('800', START - 5_000), START - 8_000],
    ] as const;
    expect(await from(...reads)).toEqual([undefined, undefined, undefined]);
  });

  it('is not suspected while the numbers grow', async () => {
    const reads = [
      [head('700', START), 0],
      [head('800', START + 5_000), START - 60_000],
      [head('900', START + 10_000), START - 55_000],
    ] as const;
    expect(await from(...reads)).toEqual([undefined, '700', '700']);
  });
});
