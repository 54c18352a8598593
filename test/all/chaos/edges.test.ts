import { Client } from 'pg';
import { cliScene } from '../../cli/harness';
import { scenario, verdict } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { fakeClock } from '../support/fake-clock';
import { edgeStand, KEY, pause, TABLE } from './edge-stand';
import type { EdgeStand } from './edge-stand';

/*
 * What only a real engine shows at the edges: its clock, its sequence, its locks, its mark, and reads that take long. Each number is a
 * scenario of the table in docs/generations-operators.md; those that are missing happen in the worlds of test/simulation.
 */
const DAY = 86_400_000;

const cli = cliScene();

describe('at the edges', () => {
  scenario('3: the clock of the engine is two days ahead for 6 s: nothing is trimmed (postgres)', async (opened) => {
    const clock = fakeClock();
    opened.add(() => clock.remove());
    const { publish, coldVerdict } = await edgeStand('postgres', opened, clock);
    const shop = await publish();
    for (let n = 0; n < 300; n++) void shop.change(`client-${n}`);
    await shop.change('pos');
    clock.set(2 * DAY);
    await pause(6_000);
    clock.set(0);
    await pause(2_000);
    expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
  });

  for (const name of ['redis', 'postgres'] as const) {
    const edge = (what: string, run: (stand: EdgeStand) => Promise<void>, timeoutMs?: number): void =>
      scenario(`${what} (${name})`, async (opened) => run(await edgeStand(name, opened, undefined, timeoutMs)));

    edge(
      '1: an operator revokes at a log that a publisher keeps, and the log goes back: refused, with what to do',
      async ({ engine, publish, coldVerdict }) => {
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
      },
    );

    edge(
      '4: the log is restored without its sequence: no position is given twice',
      async ({ run, publish, processOn, append }) => {
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
          await eventually('the change', () => verdict(api, 'pos', generation - 1) === 'superseded');
        }
        await append([['kiosk', Date.now()]]);
      },
    );

    edge(
      '9: the publisher restarts again and again while its record cannot be read: processes start and stay ready',
      async ({ publish, append, coldVerdict }) => {
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
      },
    );

    edge(
      '10: the mark is lost and 5,000 changes follow: a request that waits is answered, and the process gets ready',
      async ({ run, publish, processOn, append, coldVerdict }) => {
        const shop = await publish();
        await shop.change('pos');
        const lose = name === 'redis' ? ['DEL', `{${KEY}}:mark`] : [`DELETE FROM ${TABLE} WHERE position = 0`];
        await run(...(lose as [string, ...string[]]));
        await append(Array.from({ length: 5_000 }, (_, n) => [`client-${n}`, 5] as const));
        const cold = await processOn({ readTimeoutMs: 2_000 });
        // Without a limit of its own it would wait for the mark, which never comes.
        const settled = Promise.resolve(cold.settled()).then(() => 'settled');
        expect(await Promise.race([settled, pause(60_000)])).toBe('settled');
        expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
      },
    );

    edge(
      '11: the engine takes the commands and does not respond for 12 s: connections stay at one per reader and publisher',
      async ({ engine, run, publish, processOn, coldVerdict }) => {
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
              "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tillgate-edges'",
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
      },
      2_000,
    );

    edge(
      '12: two publishers keep one log: each says so, and no change is lost when one of them is stopped',
      async ({ publish, coldVerdict }) => {
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
      },
    );
  }
});
