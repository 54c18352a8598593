import fc from 'fast-check';
import type { Floor } from '../../../src/generation/source';
import { amount } from '../../support/amount';
import { START } from '../fixtures';
import type { FakeRedis } from './fake';
import { open } from './scene';

/** Reads the whole set, and lets `meanwhile` change it before each command. */
async function readAll(redis: FakeRedis, source: ReturnType<typeof open>['source'], meanwhile = (): void => {}) {
  const known = new Map<string, number>();
  redis.take();
  redis.whenAsked = meanwhile;
  await source.read(0, (page) => {
    for (const [clientId, floor] of page) known.set(clientId, Math.max(floor, known.get(clientId) ?? 0));
    return Promise.resolve();
  });
  redis.whenAsked = () => undefined;
  return known;
}

function fill(redis: FakeRedis, floors: readonly Floor[]): void {
  for (const floor of floors) redis.raise(...floor);
}

function clients(count: number, generationOf: (n: number) => number): Floor[] {
  return Array.from({ length: count }, (_, n) => [`client-${n}`, generationOf(n)]);
}

describe('a read of a whole set in Redis', () => {
  it('goes through a large one in windows of its scores', async () => {
    const { redis, source } = open();
    const floors = clients(4_500, (n) => START + n);
    fill(redis, floors);
    expect(await readAll(redis, source)).toEqual(new Map(floors));
    // 64 edges are looked up together, of which 4 exist.
    expect(redis.take()).toBe(`ROLE ZSCAN${' ZRANGE'.repeat(64 + 5)} ZMSCORE ZCOUNT`);
  });

  it('takes a score that thousands of floors share', async () => {
    const { redis, source } = open();
    const floors = clients(4_500, (n) => (n < 3_000 ? START : START + n));
    fill(redis, floors);
    expect(await readAll(redis, source)).toEqual(new Map(floors));
    expect(redis.take()).toMatch(/^ROLE ZSCAN( ZRANGE| ZCOUNT)+( ZSCAN){4} ZMSCORE ZCOUNT$/);
  });

  it('goes on from where more floors have come than one reply takes', async () => {
    const { redis, source } = open();
    fill(
      redis,
      clients(4_500, (n) => START + 10 * n),
    );
    let asked = 0;
    const known = await readAll(redis, source, () => {
      // Among the commands that look up the edges.
      if (++asked === 20)
        fill(
          redis,
          clients(9_000, (n) => START + 40_000 + n / 10).map(([id, at]) => [`new-${id}`, Math.floor(at)]),
        );
    });
    for (let n = 0; n < 4_500; n++) expect(known.get(`client-${n}`)).toBe(START + 10 * n);
    expect(redis.take()).not.toMatch(/ZSCAN.*ZSCAN/);
  });

  it('hands over every floor that was there, whichever ones rise meanwhile', async () => {
    const rise = fc.record({ client: fc.nat(2_999), by: fc.nat(4_000), at: fc.nat(80) });
    await fc.assert(
      fc.asyncProperty(fc.array(rise, { maxLength: 200 }), fc.integer({ min: 1, max: 3 }), async (rises, step) => {
        const { redis, source } = open();
        const floors = clients(3_000, (n) => START + Math.floor((n * step) / 2));
        fill(redis, floors);
        let asked = 0;
        const known = await readAll(redis, source, () => {
          asked++;
          for (const { client, by, at } of rises) {
            const [clientId, floor] = floors[client] as Floor;
            if (at === asked) redis.raise(clientId, floor + by);
          }
        });
        expect(floors.filter(([clientId, floor]) => (known.get(clientId) ?? 0) < floor)).toEqual([]);
      }),
      { numRuns: amount(15, 200) },
    );
  });

  it('understands buffers as texts', async () => {
    const { redis, source, client } = open();
    const floors: Floor[] = [
      ['ü-\u{1F600}', 5],
      ['pos', 9_007_199_254_740_991],
    ];
    fill(redis, floors);
    const toBytes = (value: unknown): unknown =>
      Array.isArray(value) ? value.map(toBytes) : typeof value === 'string' ? Buffer.from(value) : value;
    const call = client.call.bind(client);
    Object.assign(client, {
      call: async (...args: [string, ...string[]]) => toBytes(await call(...args)),
    });
    expect(await readAll(redis, source)).toEqual(new Map(floors));
  });

  it.each(['1.5', '', '-1', '1e3x', '9007199254740992'])('refuses the score %j in a buffer', async (score) => {
    const { redis, source, client } = open();
    const call = client.call.bind(client);
    Object.assign(client, {
      call: (command: string, ...args: string[]) =>
        command === 'ZSCAN' ? Promise.resolve(['0', [Buffer.from('pos'), Buffer.from(score)]]) : call(command, ...args),
    });
    await expect(readAll(redis, source)).rejects.toThrow('the set has a member whose score is not a generation');
  });
});
