import { backOffMs } from '../../src/core/clock';
import { SourceError } from '../../src/generation/source-error';
import { ScriptedSource, START, reasonOf, startVerifier } from './fixtures';

const BOUNDS = { firstMs: 500, longestMs: 4_000 };

describe('backOffMs', () => {
  it('doubles up to the longest', () => {
    const pauses = [1, 2, 3, 4, 5, 2_000].map((failures) => backOffMs(failures, BOUNDS, () => 0));
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 4_000, 4_000]);
  });

  it('cuts up to a half at random', () => {
    expect(backOffMs(4, BOUNDS, () => 0.5)).toBe(3_000);
    expect(backOffMs(4, BOUNDS, () => 0.999)).toBeGreaterThan(2_000);
  });
});

describe('reads that fail', () => {
  it('are retried with back-off, at least four times within the bound', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    source.fails();
    const times: number[] = [];
    const failing = source.respond;
    source.respond = () => {
      times.push(time.clock() - START);
      return failing();
    };
    await time.advance(80_000);
    expect(times).toEqual([5_000, 5_500, 6_500, 8_500, 12_500, 20_500, 35_500, 50_500, 65_500, 80_000].slice(0, -1));
  });

  it('are hurried by a hint, but not beyond the first pause', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    source.fails();
    await time.advance(40_000);
    const asked = source.asked.length;
    for (let n = 0; n < 50; n++) {
      source.hint();
      await time.advance(20);
    }
    expect(source.asked.length - asked).toBeLessThanOrEqual(3);
    expect(source.asked.length - asked).toBeGreaterThanOrEqual(1);
  });

  it('are hurried by a hint also when one came during the failed read', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    source.fails();
    await time.advance(25_000);
    source.respond = () => {
      source.hint();
      throw new Error('down');
    };
    await time.advance(15_000);
    source.holds();
    const asked = source.asked.length;
    source.hint();
    await time.advance(500);
    expect(source.asked.length).toBe(asked + 1);
    expect(verifier.status().source).toBe('fresh');
  });

  it('are logged once per outage, with the reason of our own and nothing of a foreign message', async () => {
    const source = new ScriptedSource();
    const error = Object.assign(new Error('connect to postgres://user:hunter2@db failed'), { code: 'ECONNREFUSED' });
    source.fails(error);
    const { verifier, time, log } = startVerifier({ source });
    await time.advance(100_000);
    expect(log.lines).toEqual(['warn: generations cannot be read']);
    expect(log.fields).toEqual([{ issuer: 'https://login.example', detail: 'Error (ECONNREFUSED)', ageMs: undefined }]);
    expect(verifier.status().lastError).toBe('Error (ECONNREFUSED)');
    source.fails(new SourceError('responded with 500, expected 200'));
    await time.advance(20_000);
    expect(verifier.status().lastError).toBe('responded with 500, expected 200');
    source.fails('hunter2');
    await time.advance(20_000);
    expect(verifier.status().lastError).toBe('a thrown string');
  });

  it('end after the time for one read, and their late response still raises floors but not the freshness', async () => {
    const source = new ScriptedSource();
    const late: (() => void)[] = [];
    source.respond = () =>
      new Promise((resolve) => late.push(() => resolve({ floors: [['pos', START]], nowMs: START + 99 })));
    const { verifier, time } = startVerifier({ source });
    await time.advance(5_000);
    expect(verifier.status()).toMatchObject({ failures: 1, lastError: 'no response within 5000 ms' });
    expect(verifier.settled()).toBeUndefined();
    late[0]?.();
    await time.advance(0);
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
    expect(verifier.status().source).toBe('starting');
    source.holds();
    await time.advance(500);
    expect(source.asked).toEqual([0, 0]);
  });

  it('are logged again when they succeed, with how often they failed', async () => {
    const source = new ScriptedSource();
    source.fails();
    const { verifier, time, log } = startVerifier({ source });
    await time.advance(2_000);
    source.holds();
    await time.advance(30_000);
    const { failures } = verifier.status();
    expect(failures).toBeGreaterThan(1);
    expect(log.lines.at(-1)).toBe('info: generations can be read again');
    expect(log.fields.at(-1)).toEqual({ issuer: 'https://login.example', failures });
  });

  it('that reject late cause no unhandled rejection', async () => {
    const source = new ScriptedSource();
    const late: (() => void)[] = [];
    source.respond = () => new Promise((_, reject) => late.push(() => reject(new Error('too late'))));
    const { verifier, time } = startVerifier({ source });
    await time.advance(5_000);
    source.holds();
    await time.advance(1_000);
    late[0]?.();
    await time.advance(0);
    expect(verifier.status()).toMatchObject({ source: 'fresh', failures: 1 });
  });
});

describe('a watch that fails', () => {
  it('leaves polling as the base line, and is asked for again until it stands', async () => {
    const source = new ScriptedSource();
    source.watching = () => Promise.reject(new Error('no pub/sub'));
    const { verifier, time, log } = startVerifier({ source });
    await verifier.ready();
    expect(log.lines).toEqual(['warn: the watch on generations is lost, polling continues']);
    expect(log.fields).toEqual([{ issuer: 'https://login.example', detail: 'Error' }]);
    await time.advance(2_500);
    expect(log.lines).toHaveLength(1);
    expect(source.events).toEqual(['watch', 'read', 'watch']);
    source.watching = () => Promise.resolve();
    source.events.length = 0;
    await time.advance(600);
    // What moved during the gap is read immediately.
    expect(source.events).toEqual(['watch', 'read']);
    expect(log.lines).toEqual([
      'warn: the watch on generations is lost, polling continues',
      'info: the watch on generations is open again',
    ]);
  });

  it('by hanging holds up the first read for the time of one read only', async () => {
    const source = new ScriptedSource();
    const late: (() => void)[] = [];
    source.watching = () => new Promise((resolve) => late.push(resolve));
    const { verifier, time } = startVerifier({ source });
    await time.advance(4_999);
    expect(verifier.settled()).toBeDefined();
    await time.advance(1);
    expect(verifier.status().source).toBe('fresh');
    // Stands too late: it is stopped, so that there are never two.
    late[0]?.();
    await time.advance(0);
    expect(source.events).toEqual(['watch', 'read', 'stop']);
    expect(source.wakes.size).toBe(0);
  });

  it('by being lost is stopped and asked for again', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    source.lose(new Error('gone'));
    source.lose(new Error('gone'));
    await time.advance(1_000);
    expect(source.events).toEqual(['watch', 'read', 'stop', 'watch', 'read']);
    expect(source.wakes.size).toBe(1);
    await time.advance(60_000);
    expect(source.events.filter((event) => event === 'watch')).toHaveLength(2);
  });

  it('time and again is asked for with growing pauses, also if it stands for a moment each time', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    const cut = (): void => {
      if (source.wakes.size > 0) source.lose(new Error('cut'));
      time.schedule(cut, 10);
    };
    cut();
    await time.advance(60_000);
    const watches = source.events.filter((event) => event === 'watch').length;
    expect(watches).toBeGreaterThan(4);
    expect(watches).toBeLessThan(9);
  });

  it('after it stood for a while is asked for again soon', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    for (let n = 0; n < 3; n++) {
      await time.advance(32_000);
      source.lose(new Error('gone'));
    }
    await time.advance(1_000);
    expect(source.wakes.size).toBe(1);
  });

  it.each(['closed', 'lost'])('by being %s while it is on its way is stopped as soon as it stands', async (how) => {
    const source = new ScriptedSource();
    let stand: () => void = () => undefined;
    let lose: (error: unknown) => void = () => undefined;
    const watch = (wake: () => void, lost: (error: unknown) => void = () => undefined): Promise<() => void> => {
      lose = lost;
      source.watching = () => new Promise((resolve) => (stand = resolve));
      return source.watch(wake);
    };
    const { verifier, time } = startVerifier({ source: { read: (sinceMs) => source.read(sinceMs), watch } });
    if (how === 'lost') lose(new Error('gone'));
    else await verifier.close();
    stand();
    await time.advance(0);
    expect(source.wakes.size).toBe(0);
    expect(source.events).toContain('stop');
    expect(source.events.includes('read')).toBe(how === 'lost');
  });

  it('to be stopped properly does no harm', async () => {
    const watch = (): Promise<() => void> =>
      Promise.resolve(() => {
        throw new Error('cannot stop');
      });
    const { verifier } = startVerifier({
      source: { read: () => Promise.resolve({ floors: [], nowMs: START }), watch },
    });
    await verifier.ready();
    await expect(verifier.close()).resolves.toBeUndefined();
  });
});
