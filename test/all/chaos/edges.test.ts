import { Redis } from 'ioredis';
import { Client } from 'pg';
import { cliScene } from '../../cli/harness';
import { ends, startAuthorizationServer, startProcess, verdict } from '../faults/generation-scene';
import { openSource as openPostgres } from '../postgres/fixtures';
import { byIoredis, openSource as openRedis } from '../redis/fixtures';
import { eventually } from '../support/eventually';
import { fakeClock } from '../support/fake-clock';
import type { FakeClock } from '../support/fake-clock';
import { ENGINES } from './engines';
import type { Engine } from './engines';

/*
 * What happens at the edges: entries whose time has not come, clocks that go wrong and come right again, positions, and changes from
 * outside of the publisher's record. Each number is a scenario of the table in docs/generations-operators.md.
 */
const KEY = 'tillgate:generations';
const TABLE = 'tillgate_generations';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Limits that a test can wait for. */
const LIMITS = { pollMs: 250, readTimeoutMs: 2_000, skewMs: 1_000, learn: false };

type Source = Parameters<typeof startAuthorizationServer>[0];
type Process = ReturnType<typeof startProcess>;

/** A command to the engine: of Redis, or a statement of PostgreSQL. */
type Run = (command: string, ...args: unknown[]) => Promise<unknown>;

const opened = ends();
const cli = cliScene();
const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

afterEach(() => opened.run());

describe.each(['redis', 'postgres'] as const)('at the edges of %s', (name) => {
  let engine: Engine;
  let clock: FakeClock;
  let run: Run;

  beforeEach(async () => {
    clock = fakeClock();
    opened.add(() => clock.remove());
    // Redis allocates its memory by jemalloc, whose start libfaketime does not survive.
    engine = (await ENGINES[name]?.(name === 'redis' ? {} : clock.env)) as Engine;
    opened.add(() => engine.stop());
    run = await connect();
  });

  async function connect(): Promise<Run> {
    if (name === 'redis') {
      const admin = new Redis(engine.port);
      admin.on('error', () => undefined);
      opened.add(() => admin.disconnect());
      return (command, ...args) => admin.call(command, ...args.map(String));
    }
    const run: Run = async (text, ...values) => {
      // Another connection each time: the server is restored in between.
      const admin = new Client({ connectionString: engine.url(engine.port) });
      admin.on('error', () => undefined);
      await admin.connect();
      try {
        return (await admin.query(text, values)).rows;
      } finally {
        await admin.end();
      }
    };
    return Promise.resolve(run);
  }

  async function open(at = engine, timeoutMs = 2_000): Promise<Source> {
    const url = at.url(at.port);
    const one =
      name === 'redis'
        ? await openRedis(byIoredis(), url, { timeoutMs })
        : openPostgres({ connectionString: url, application_name: 'tillgate-edges' }, { timeoutMs });
    opened.add(() => one.close());
    return one.source;
  }

  async function publish(options: Parameters<typeof startAuthorizationServer>[1] = {}, at = engine) {
    const shop = startAuthorizationServer(await open(at), { timeoutMs: 1_000, ...options });
    opened.add(() => shop.publisher.close());
    return shop;
  }

  async function processOn(options: Partial<Parameters<typeof startProcess>[1]> = {}): Promise<Process> {
    const started = startProcess(await open(), { ...LIMITS, ...options });
    opened.add(() => started.close());
    return started;
  }

  /** Appends as another program does, without any check. */
  async function append(changes: readonly (readonly [string, number])[]): Promise<void> {
    if (name === 'redis') {
      for (const [id, generation] of changes) {
        await run('XADD', KEY, '*', 'client_id', id, 'generation', generation);
      }
      return;
    }
    await run(
      `INSERT INTO ${TABLE} (client_id, generation) SELECT * FROM unnest($1::text[], $2::bigint[])`,
      changes.map(([id]) => id),
      changes.map(([, generation]) => generation),
    );
  }

  /** What a process that starts says about a token from before the last change, once it knows. */
  async function coldVerdict(generation: number, options = {}): Promise<string> {
    const cold = await processOn(options);
    await cold.settled();
    // It refuses with 503 until it is sure.
    const untilMs = Date.now() + 8_000;
    while (verdict(cold, 'pos', generation) === 'generations_unavailable' && Date.now() < untilMs) await pause(50);
    return verdict(cold, 'pos', generation);
  }

  it('1: an operator revokes at a log that a publisher keeps, and the log goes back: refused, with what to do', async () => {
    const shop = await publish();
    await shop.change('pos');
    await shop.publisher.ready();
    await engine.save();
    const { exitCode, stderr } = await cli.run('revoke', 'pos', '--generations', engine.url(engine.port));
    const revokedMs = Date.now();
    await engine.restore();
    await eventually('the log is repaired', () => shop.publisher.status().state === 'current');
    // An exit code of 0 promises that tokens from before are refused from here on.
    if (exitCode === 0) expect(await coldVerdict(revokedMs - 1)).toBe('superseded');
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Change pos at its authorization server')]);
  });

  it.each(['the log goes back', 'the publisher restarts with the change pending'])(
    '2: a wrong entry in microseconds of the client of a true change: %s',
    async (when) => {
      const shop = await publish();
      await shop.publisher.ready();
      await append([['pos', Date.now() * 1_000]]);
      if (when === 'the log goes back') {
        await engine.save();
        await shop.change('pos');
        await engine.restore();
      } else {
        shop.publisher.close();
        (shop.record as Map<string, number>).set('pos', Date.now());
        const next = await publish({ record: shop.record as Map<string, number> });
        await next.publisher.ready();
      }
      expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
    },
  );

  it('3: the clock of the engine is two days ahead for 6 s: nothing is trimmed', async () => {
    const shop = await publish();
    for (let n = 0; n < 300; n++) void shop.change(`client-${n}`);
    await shop.change('pos');
    clock.set(2 * DAY);
    await pause(6_000);
    clock.set(0);
    await pause(2_000);
    expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
  });

  it('4: the log is restored without its sequence: no position is given twice', async () => {
    const shop = await publish();
    await shop.change('pos');
    for (let n = 0; n < 20; n++) await shop.change(`client-${n}`);
    const api = await processOn();
    await api.ready();
    // The ids of a stream are those of the stream itself.
    if (name === 'postgres') {
      await run(`DELETE FROM ${TABLE} WHERE position BETWEEN 1 AND 15`);
      await run(`SELECT setval('${TABLE}_position', 1, false)`);
    }
    for (let n = 0; n < 10; n++) {
      expect(await shop.change('pos')).toBe(true);
      const generation = shop.record.get('pos') as number;
      await eventually('the change', () => verdict(api, 'pos', generation - 1) === 'superseded', 5_000);
    }
    await append([['kiosk', Date.now()]]);
  });

  it('5: two changes of a client of the future: each is in force when its time has come', async () => {
    const shop = await publish();
    await shop.publisher.ready();
    const api = await processOn();
    await api.ready();
    const nowMs = Date.now();
    await append([
      ['pos', nowMs + 3_000],
      ['pos', nowMs + 6_000],
    ]);
    await pause(4_000);
    expect(verdict(api, 'pos', nowMs + 3_000 - 1)).toBe('superseded');
    await pause(3_000);
    expect(verdict(api, 'pos', nowMs + 6_000 - 1)).toBe('superseded');
  });

  it('6: 11,000 changes at a process whose clock is an hour slow: all are in force when it is right again', async () => {
    const shop = await publish();
    await shop.publisher.ready();
    let slowMs = HOUR;
    const api = await processOn({ clock: () => Date.now() - slowMs });
    const nowMs = Date.now();
    const changes = Array.from({ length: 11_000 }, (_, n) => [`client-${n}`, nowMs - n] as const);
    await append(changes);
    await pause(2_000);
    slowMs = 0;
    const unknown = (): number =>
      changes.filter(([id, generation]) => verdict(api, id, generation - 1) === 'accepted').length;
    await eventually('it is ready', () => verdict(api, 'other', nowMs) === 'accepted', 20_000);
    await pause(2_000);
    expect(unknown()).toBe(0);
  });

  it('7: the log is wiped while the clock of the publisher is 120 s slow: it is not called complete', async () => {
    let slowMs = 0;
    const shop = await publish({ clock: () => Date.now() - slowMs });
    await shop.change('pos');
    slowMs = 120_000;
    await engine.wipe();
    const old = (shop.record.get('pos') as number) - 1;
    await pause(3_000);
    expect(await coldVerdict(old, { skewMs: 180_000 })).not.toBe('accepted');
    slowMs = 0;
    await eventually('it is complete', () => shop.publisher.status().pending === 0);
    expect(await coldVerdict(old)).toBe('superseded');
  });

  it('8: the clock of the publisher is a day ahead for 4 s, and that state of the log is restored: no process is ready', async () => {
    let aheadMs = DAY;
    const shop = await publish({ clock: () => Date.now() + aheadMs });
    await shop.publisher.ready();
    await pause(4_000);
    await engine.save();
    aheadMs = 0;
    await shop.change('pos');
    shop.publisher.close();
    await engine.restore();
    const old = (shop.record.get('pos') as number) - 1;
    for (let start = 0; start < 2; start++) {
      expect(await coldVerdict(old, { maxSilenceMs: 7_000 })).toBe('generations_unavailable');
    }
  });

  it('9: the publisher restarts again and again while its record cannot be read: processes start and stay ready', async () => {
    const shop = await publish();
    await shop.change('pos');
    await append(Array.from({ length: 30_000 }, (_, n) => [`client-${n}`, 5] as const));
    await pause(1_500);
    shop.publisher.close();
    const restarts = (async () => {
      for (let start = 0; start < 8; start++) {
        const next = await publish({
          changes: () => {
            throw new Error('no database');
          },
        });
        await pause(1_000);
        next.publisher.close();
      }
    })();
    await pause(2_500);
    const current = shop.record.get('pos') as number;
    expect(await coldVerdict(current)).toBe('accepted');
    expect(await coldVerdict(current - 1)).toBe('superseded');
    await restarts;
  });

  it('10: the mark is lost and 5,000 changes follow: a request that waits is answered, and the process gets ready', async () => {
    const shop = await publish();
    await shop.change('pos');
    const lose = name === 'redis' ? ['DEL', `{${KEY}}:mark`] : [`DELETE FROM ${TABLE} WHERE position = 0`];
    await run(...(lose as [string, ...string[]]));
    await append(Array.from({ length: 5_000 }, (_, n) => [`client-${n}`, 5] as const));
    const startedMs = Date.now();
    const cold = await processOn();
    await Promise.race([cold.settled(), pause(10_000)]);
    expect(Date.now() - startedMs).toBeLessThan(LIMITS.readTimeoutMs + 1_500);
    expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
  });

  it('11: the engine takes the commands and does not respond for 12 s: connections stay at one per reader and publisher', async () => {
    const shop = await publish();
    await shop.change('pos');
    const api = await processOn({ readTimeoutMs: 2_000 });
    await api.ready();
    let release = (): Promise<unknown> => Promise.resolve();
    if (name === 'redis') {
      await run('CLIENT', 'PAUSE', 12_000, 'ALL');
    } else {
      const blocking = new Client({ connectionString: engine.url(engine.port) });
      await blocking.connect();
      await blocking.query(`BEGIN; LOCK TABLE ${TABLE} IN ACCESS EXCLUSIVE MODE`);
      release = () => blocking.end();
    }
    let most = 0;
    const untilMs = Date.now() + 12_000;
    while (Date.now() < untilMs) {
      void shop.change('pos');
      if (name === 'postgres') {
        const [row] = (await run(
          "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tillgate-edges'",
        )) as { count: string }[];
        most = Math.max(most, Number(row?.count));
      }
      await pause(250);
    }
    await release();
    await eventually('nothing is pending', () => shop.publisher.status().pending === 0);
    // A reader and a publisher; one of them may just be replaced.
    expect(most).toBeLessThanOrEqual(3);
    expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
  });

  it('12: two publishers keep one log: each says so, and no change is lost when one of them is stopped', async () => {
    const shop = await publish();
    const record = shop.record as Map<string, number>;
    const second = await publish({ record });
    const isNoticed = ({ publisher }: typeof shop): boolean =>
      /two publishers/.test(publisher.status().lastError ?? '');
    await eventually('one of them finds the mark of the other', () => isNoticed(shop) || isNoticed(second));
    for (let n = 0; n < 3; n++) {
      await shop.change('pos');
      await second.change('pos');
    }
    // What a publisher still has to append when it is stopped, it appends when it starts again.
    await eventually('the log has the changes of the second one', () => second.publisher.status().pending === 0);
    second.publisher.close();
    await eventually('the first one keeps the log', () => shop.change('kiosk'));
    expect(await coldVerdict((record.get('pos') as number) - 1)).toBe('superseded');
  });

  it('13: the log keeps changes for a shorter time than a process needs them: it refuses, and says what to raise', async () => {
    const shop = await publish({ maxTokenAgeSeconds: 60 });
    await shop.change('pos');
    const api = await processOn();
    await eventually('it says so', () =>
      /raise maxTokenAgeSeconds of the publisher/.test(api.status().lastError ?? ''),
    );
    expect(verdict(api, 'pos', shop.record.get('pos') as number)).toBe('generations_unavailable');
  });

  it.each(['is gone', 'writes to another primary'])(
    '14: the publisher %s: after maxSilenceMs processes refuse',
    async (what) => {
      const shop = await publish();
      await shop.change('pos');
      const generation = shop.record.get('pos') as number;
      const api = await processOn({ maxSilenceMs: 3_000 });
      await api.ready();
      shop.publisher.close();
      if (what === 'writes to another primary') {
        const other = (await ENGINES[name]?.()) as Engine;
        opened.add(() => other.stop());
        const elsewhere = await publish({ record: shop.record as Map<string, number> }, other);
        expect(await elsewhere.change('pos')).toBe(true);
      }
      await eventually('it refuses', () => verdict(api, 'pos', generation) === 'generations_unavailable', 10_000);
      expect(await coldVerdict(generation, { maxSilenceMs: 3_000 })).toBe('generations_unavailable');
    },
  );
});
