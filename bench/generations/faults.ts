import { runHistory } from '../../test/all/histories/history';
import { postgresStore, redisStore } from '../../test/all/histories/stores';
import type { HistoryStore } from '../../test/all/histories/stores';
import { round, table } from '../stats';

const STORES: Readonly<Record<string, () => Promise<HistoryStore>>> = {
  'Redis, `appendfsync always`': () => redisStore('always'),
  'Redis, `appendfsync everysec`': () => redisStore('everysec'),
  'PostgreSQL, synchronous standby': () => postgresStore(),
};

const CHANGES_PER_FAULT = 1_000;

/** Runs each store through a history of random faults, and returns a table of what was lost. */
export async function faultsTable(changes: number, seed: number): Promise<string> {
  const rows = [];
  for (const [name, open] of Object.entries(STORES)) {
    const startedMs = performance.now();
    const store = await open();
    try {
      const outcome = await runHistory(store, { seed, changes, faults: Math.ceil(changes / CHANGES_PER_FAULT) });
      const seconds = round((performance.now() - startedMs) / 1000);
      console.error(`${name}, seed ${seed}, ${seconds} s: ${JSON.stringify(outcome)}`);
      const faults = Object.entries(outcome.faults).map(([fault, times]) => `${times} × ${fault}`);
      const { excused, lost, missed, revived, checks } = outcome;
      rows.push([name, outcome.changes, faults.join(', '), lost, excused, missed, revived, checks]);
    } finally {
      await store.stop();
    }
  }
  const head = [
    'store',
    'acknowledged',
    'faults',
    'lost',
    'may be lost',
    'missed by a fresh reader',
    'revived',
    'checks',
  ];
  return `${changes} changes per store, faults at random, seed ${seed}\n\n${table(head, rows)}`;
}
