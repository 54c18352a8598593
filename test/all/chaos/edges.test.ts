import { Client } from 'pg';
import { cliScene } from '../../cli/harness';
import { scenario, verdict } from '../faults/generation-scene';
import type { Ends } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { fakeClock } from '../support/fake-clock';
import { edgeStand, KEY, pause, startEngine, TABLE } from './edge-stand';
import type { EdgeStand } from './edge-stand';

/*
 * What happens at the edges: entries whose time has not come, clocks that go wrong and come right again, positions, and changes from
 * outside of the publisher's record. Each number is a scenario of the table in docs/generations-operators.md.
 */
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** How long a process that must not become sure is watched. */
const UNSURE_MS = 8_000;

const cli = cliScene();

describe('at the edges', () => {
  for (const name of ['redis', 'postgres'] as const) {
    const edge = (what: string, run: (stand: EdgeStand, opened: Ends) => Promise<void>, timeoutMs?: number): void =>
      scenario(`${what} (${name})`, async (opened) => run(await edgeStand(name, opened, undefined, timeoutMs), opened));

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

    for (const when of ['the log goes back', 'the publisher restarts with the change pending']) {
      edge(
        `2: a wrong entry in microseconds of the client of a true change: ${when}`,
        async ({ engine, publish, append, coldVerdict }) => {
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
    }

    scenario(`3: the clock of the engine is two days ahead for 6 s: nothing is trimmed (${name})`, async (opened) => {
      const clock = fakeClock();
      opened.add(() => clock.remove());
      const { publish, coldVerdict } = await edgeStand(name, opened, clock);
      const shop = await publish();
      for (let n = 0; n < 300; n++) void shop.change(`client-${n}`);
      await shop.change('pos');
      clock.set(2 * DAY);
      await pause(6_000);
      clock.set(0);
      await pause(2_000);
      expect(await coldVerdict((shop.record.get('pos') as number) - 1)).toBe('superseded');
    });

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
      '5: two changes of a client of the future: each is in force when its time has come',
      async ({ publish, processOn, append }) => {
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
      },
    );

    edge(
      '6: 11,000 changes at a process whose clock is an hour slow: all are in force when it is right again',
      async ({ publish, processOn, append }) => {
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
        await eventually('it is ready', () => verdict(api, 'other', nowMs) === 'accepted');
        await pause(2_000);
        expect(unknown()).toBe(0);
      },
    );

    edge(
      '7: the log is wiped while the clock of the publisher is 120 s slow: it is not called complete',
      async ({ engine, publish, coldVerdict }) => {
        let slowMs = 0;
        const shop = await publish({ clock: () => Date.now() - slowMs });
        await shop.change('pos');
        slowMs = 120_000;
        await engine.wipe();
        const old = (shop.record.get('pos') as number) - 1;
        await pause(3_000);
        expect(await coldVerdict(old, { skewMs: 180_000 }, UNSURE_MS)).not.toBe('accepted');
        slowMs = 0;
        await eventually('it is complete', () => shop.publisher.status().pending === 0);
        expect(await coldVerdict(old)).toBe('superseded');
      },
    );

    edge(
      '8: the clock of the publisher is a day ahead for 4 s, and that state of the log is restored: no process is ready',
      async ({ engine, publish, coldVerdict }) => {
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
          expect(await coldVerdict(old, { maxSilenceMs: 7_000 }, UNSURE_MS)).toBe('generations_unavailable');
        }
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

    edge(
      '13: the log keeps changes for a shorter time than a process needs them: it refuses, and says what to raise',
      async ({ publish, processOn }) => {
        const shop = await publish({ maxTokenAgeSeconds: 60 });
        await shop.change('pos');
        const api = await processOn();
        await eventually('it says so', () =>
          /raise maxTokenAgeSeconds of the publisher/.test(api.status().lastError ?? ''),
        );
        expect(verdict(api, 'pos', shop.record.get('pos') as number)).toBe('generations_unavailable');
      },
    );

    for (const what of ['is gone', 'writes to another primary']) {
      edge(
        `14: the publisher ${what}: after maxSilenceMs processes refuse`,
        async ({ publish, processOn, coldVerdict }, opened) => {
          const shop = await publish();
          await shop.change('pos');
          const generation = shop.record.get('pos') as number;
          const api = await processOn({ maxSilenceMs: 3_000 });
          await api.ready();
          shop.publisher.close();
          if (what === 'writes to another primary') {
            const other = await startEngine(name);
            opened.add(() => other.stop());
            const elsewhere = await publish({ record: shop.record as Map<string, number> }, other);
            expect(await elsewhere.change('pos')).toBe(true);
          }
          await eventually('it refuses', () => verdict(api, 'pos', generation) === 'generations_unavailable');
          expect(await coldVerdict(generation, { maxSilenceMs: 3_000 }, UNSURE_MS)).toBe('generations_unavailable');
        },
      );
    }
  }
});
