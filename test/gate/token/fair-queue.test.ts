import fc from 'fast-check';
import type { AuthError } from '../../../src/gate/core/errors';
import { clientUnit, FairQueue, Places } from '../../../src/gate/token/fair-queue';
import type { Caller } from '../../../src/gate/token/fair-queue';

const client = (id: string): Caller => ({ client: clientUnit('https://login.test', id), address: '192.0.2.1' });
const site = (address: string): Caller => ({ address });
const many = (count: number, name: string): string[] => Array.from({ length: count }, (_, index) => `${name}${index}`);

/** Lets promises that are settled call back. */
const settle = (): Promise<void> => new Promise(setImmediate);

/** A queue whose work ends when a test says so, the oldest first. */
function scene(limits = { running: 2, waiting: 4 }) {
  const queue = new FairQueue(limits, 'things');
  const started: string[] = [];
  const refused: string[] = [];
  const running: (() => void)[] = [];
  function add(name: string, caller: Caller, cost = 1, signal?: AbortSignal): void {
    const work = (): Promise<void> => {
      started.push(name);
      return new Promise((resolve) => running.push(resolve));
    };
    queue.run(caller, cost, work, signal).catch((error: unknown) => {
      refused.push(`${name}: ${(error as AuthError).reason}, ${(error as AuthError).privateDetail}`);
    });
  }
  /** Adds work of the client of this name. */
  function addMany(count: number, id: string, cost = 1): void {
    for (const name of many(count, id)) add(name, client(id), cost);
  }
  async function end(count = 1): Promise<void> {
    for (let done = 0; done < count; done++) {
      running.shift()?.();
      await settle();
    }
  }
  /** Ends all work, in the order of its start. */
  async function endAll(): Promise<void> {
    await settle();
    while (running.length > 0) await end();
  }
  return { add, addMany, end, endAll, running, started, refused, queue };
}

describe('FairQueue: what runs at the same time', () => {
  it('is as much as the limit allows, where one unit leaves as much as it takes', async () => {
    const { addMany, started, end } = scene({ running: 8, waiting: 100 });
    for (const id of ['a', 'b', 'c', 'd']) addMany(8, id);
    await settle();
    expect(started).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'c0', 'd0']);
    await end();
    // Of three that hold one or none less than their share, the one that was served least.
    expect(started).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'c0', 'd0']);
  });

  it('counts by its cost; what costs more than the limit runs alone', async () => {
    const { add, started, end } = scene({ running: 10, waiting: 100 });
    add('large', client('a'), 50);
    add('small', client('b'), 1);
    await settle();
    expect(started).toEqual(['large']);
    await end();
    expect(started).toEqual(['large', 'small']);
    add('large again', client('a'), 50);
    add('five', client('c'), 5);
    await settle();
    expect(started).toEqual(['large', 'small', 'five']);
    await end(2);
    expect(started).toEqual(['large', 'small', 'five', 'large again']);
  });

  it('gives the place of work that rejects, or throws, to the next', async () => {
    const { queue } = scene({ running: 1, waiting: 4 });
    const failing = [
      queue.run({}, 1, () => Promise.reject(new Error('rejects'))),
      queue.run({}, 1, () => {
        throw new Error('throws');
      }),
    ];
    await expect(queue.run({}, 1, () => Promise.resolve('good'))).resolves.toBe('good');
    expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});

describe('FairQueue: whose turn it is', () => {
  it('the unit that was served least of late, each in the order of its work', async () => {
    const { add, addMany, started, endAll } = scene({ running: 1, waiting: 100 });
    addMany(3, 'a');
    addMany(2, 'b');
    await settle();
    add('c0', client('c'));
    await endAll();
    expect(started).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2']);
  });

  it('counts cost, not numbers: two of half the cost for one', async () => {
    const { addMany, started, endAll } = scene({ running: 2, waiting: 100 });
    addMany(3, 'dear', 2);
    addMany(6, 'cheap', 1);
    await endAll();
    expect(started.slice(0, 7)).toEqual(['dear0', 'cheap0', 'cheap1', 'dear1', 'cheap2', 'cheap3', 'dear2']);
  });

  it('clients and sites take turns: neither kind goes first', async () => {
    const { add, started, endAll } = scene({ running: 1, waiting: 100 });
    for (const name of many(4, 'client')) add(name, client('a'));
    for (const name of many(3, 'site')) add(name, site('198.51.100.7'));
    await endAll();
    expect(started).toEqual(['client0', 'site0', 'client1', 'site1', 'client2', 'site2', 'client3']);
  });

  it('forgets what it was served while others were', async () => {
    const { add, addMany, started, endAll } = scene({ running: 1, waiting: 8 });
    addMany(6, 'a');
    await endAll();
    for (let round = 0; round < 8; round++) {
      addMany(8, 'b');
      await endAll();
    }
    started.length = 0;
    add('running', client('b'));
    add('b', client('b'));
    add('a', client('a'));
    await endAll();
    expect(started).toEqual(['running', 'a', 'b']);
  });

  it.each([
    ['the last byte of an IPv4 address', '192.0.2.1', '192.0.2.200'],
    ['the last 80 bits of an IPv6 address', '2001:db8:1:2::1', '2001:db8:1:ffff:ffff::7'],
    ['how much of it is abbreviated', '2001:db8::1', '2001:0DB8:0:0:8::'],
    ['how an IPv4 address is written', '192.0.2.9', '::ffff:192.0.2.9'],
    ['text that is not an address', 'unknown', '<script>'],
  ])('one site are addresses that differ in %s only', async (_what, one, other) => {
    const { add, started, endAll } = scene({ running: 1, waiting: 100 });
    add('running', client('a'));
    add('one', site(one));
    add('other', site(other));
    add('another site', site('2001:db8:2::1'));
    await endAll();
    expect(started).toEqual(['running', 'one', 'another site', 'other']);
  });

  it('a client is not the site of its name, nor a client of another issuer', async () => {
    const { add, started, endAll } = scene({ running: 1, waiting: 100 });
    add('running', client('a'));
    add('a1', client('a'));
    add('of another issuer', { client: clientUnit('https://other.test', 'a') });
    add('site', { address: 'a' });
    await endAll();
    expect(started).toEqual(['running', 'site', 'of another issuer', 'a1']);
  });
});

describe('FairQueue: what waits', () => {
  it('is bounded for each of the two kinds; more is refused with 429 and Retry-After', async () => {
    const { queue, add, addMany, refused, started, endAll } = scene();
    addMany(6, 'a');
    await expect(queue.run(client('a'), 1, () => Promise.resolve())).rejects.toMatchObject({
      reason: 'too_many_unknown_keys',
      status: 429,
      headers: { 'Retry-After': '1' },
      privateDetail: 'too many things wait',
    });
    add('site', site('192.0.2.1'));
    await settle();
    expect(refused).toEqual(['a5: too_many_unknown_keys, too many things wait']);
    await endAll();
    expect(started).toEqual(['a0', 'site', 'a1', 'a2', 'a3', 'a4']);
  });

  it('is the last of the unit with the most that makes room for another unit', async () => {
    const { add, addMany, refused, started, endAll } = scene({ running: 1, waiting: 4 });
    addMany(5, 'a');
    add('b0', client('b'));
    add('b1', client('b'));
    add('b2', client('b'));
    await endAll();
    expect(refused.map((each) => each.slice(0, 2))).toEqual(['a4', 'a3', 'b2']);
    expect(started).toEqual(['a0', 'b0', 'a1', 'b1', 'a2']);
  });

  it('turns nothing away for one that would get as much', async () => {
    const { add, refused, endAll } = scene({ running: 1, waiting: 2 });
    for (const name of ['running', 'a', 'b', 'c']) add(name, client(name));
    await endAll();
    expect(refused).toEqual(['c: too_many_unknown_keys, too many things wait']);
  });

  it('leaves when its signal aborts, and not once it runs', async () => {
    const { add, started, refused, endAll } = scene({ running: 1, waiting: 4 });
    const [first, second] = [new AbortController(), new AbortController()];
    add('running', client('a'), 1, first.signal);
    add('waiting', client('a'), 1, second.signal);
    add('after it', client('a'));
    await settle();
    first.abort();
    second.abort();
    await endAll();
    expect(started).toEqual(['running', 'after it']);
    expect(refused).toEqual(['waiting: too_many_unknown_keys, too many things wait']);
  });
});

describe('FairQueue: floods', () => {
  /** Proofs of P-384 on one processor, as the thread pool gets them. */
  const LIMITS = { running: 4_000, waiting: 250_000 };

  it('of proofs of one client: a new token of another site is next, whatever waits', async () => {
    const { add, started, refused, running, end } = scene(LIMITS);
    for (let round = 0; round < 50; round++) {
      for (const name of many(1_000, `proof ${round}.`)) add(name, client('greedy'), 700);
      const before = started.length;
      add(`token ${round}`, site('198.51.100.1'), 700);
      await settle();
      await end(running.length);
      expect(started[before]).toBe(`token ${round}`);
    }
    expect(refused.filter((each) => each.startsWith('token'))).toEqual([]);
  });

  it('of tokens from a thousand sites: a proven client is next but one', async () => {
    const { add, started, refused, running, end } = scene(LIMITS);
    for (let round = 0; round < 20; round++) {
      for (let number = 0; number < 1_000; number++) {
        add(`forged ${round}.${number}`, site(`10.${number >> 8}.${number & 255}.1`), 700);
      }
      const before = started.length;
      add(`proof ${round}`, client('good'), 700);
      await settle();
      await end(running.length);
      expect(started.slice(before, before + 2)).toContain(`proof ${round}`);
    }
    expect(refused.filter((each) => each.startsWith('proof'))).toEqual([]);
  });
});

describe('Places', () => {
  /** Takes places until there is no room. */
  function fill(places: Places, unit: string): number {
    let count = 0;
    for (; places.hasRoom(unit); count++) places.take(unit);
    return count;
  }

  it('are half of all for one unit, a third each for two, and never all', () => {
    const places = new Places(12);
    expect([fill(places, 'a'), fill(places, 'b'), fill(places, 'c'), fill(places, 'd')]).toEqual([6, 3, 2, 1]);
    expect(fill(places, 'e')).toBe(0);
    for (let count = 0; count < 6; count++) places.take('a', -1);
    expect([fill(places, 'b'), fill(places, 'a')]).toEqual([2, 2]);
  });
});

describe('FairQueue: nobody starves', () => {
  const unit = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const work = fc.record({ id: unit, cost: fc.integer({ min: 1, max: 9 }) });

  it('a newcomer waits for at most one work of each other unit, whatever waits', async () => {
    const backlog = fc.array(work, { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(backlog, fc.nat(50), async (works, ended) => {
        const { add, end, started } = scene({ running: 1, waiting: 10_000 });
        works.forEach(({ id, cost }, number) => add(`${id}${number}`, client(id), cost));
        await end(Math.min(ended, works.length - 1));
        add('newcomer', client('newcomer'));
        await end(new Set(works.map(({ id }) => id)).size + 1);
        expect(started).toContain('newcomer');
      }),
      { numRuns: 50 },
    );
  });

  it('whatever arrives, work that waits starts within a bound, counted in works that end', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const waiting = 120;
    const cost = fc.integer({ min: 1, max: 9 });
    const arrivals = fc.record({
      running: fc.integer({ min: 1, max: 20 }),
      /** What was served before. */
      before: fc.array(work, { maxLength: 30 }),
      late: work,
      costs: fc.array(cost, { minLength: 1, maxLength: 5 }),
      areNew: fc.boolean(),
      areSites: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(arrivals, async ({ running, before, late, costs, areNew, areSites }) => {
        const { add, end, endAll, started, refused } = scene({ running, waiting });
        const caller = (id: string, number = ''): Caller =>
          areSites[ids.indexOf(id)] ? site(`2001:db8:${id}${number}::1`) : client(id + number);
        before.forEach(({ id, cost }, number) => add(`before ${number}`, caller(id), cost));
        await endAll();
        let arrived = 0;
        /** One more of each other unit, or of a unit that was never seen. */
        const arrive = (): void => {
          for (const id of ids.filter((other) => other !== late.id)) {
            const number = areNew ? `${arrived}` : '';
            add(`of ${id}`, caller(id, number), costs[arrived++ % costs.length]);
          }
        };
        for (let turn = 0; turn < 2; turn++) arrive();
        add('late', caller(late.id), late.cost);
        let ended = 0;
        for (; !started.includes('late'); ended++) {
          expect(ended).toBeLessThanOrEqual(2 * ids.length * waiting);
          arrive();
          await end();
        }
        expect(refused.filter((name) => name.startsWith('late'))).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });

  it('what is not refused starts, in the order of its unit', async () => {
    const arrivals = fc.array(work, { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(arrivals, async (works) => {
        const { add, endAll, started, refused } = scene({ running: 4, waiting: 40 });
        works.forEach(({ id, cost }, number) => add(`${id} ${number}`, client(id), cost));
        await endAll();
        expect(started.length + refused.length).toBe(works.length);
        for (const id of ['a', 'b', 'c', 'd', 'e']) {
          const places = started.filter((name) => name.startsWith(id)).map((name) => Number(name.slice(2)));
          expect(places).toEqual([...places].sort((one, other) => one - other));
        }
      }),
      { numRuns: 50 },
    );
  });
});
