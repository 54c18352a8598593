/**
 * What a request costs while something grows: clients, floors, scopes, routes, issuers. `npm run bench:growth` prints a
 * table and writes docs/growth.svg. In one process and without a network, so that only the app and node are measured.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pass } from '../../test/all/work/requests';
import { median, round, table } from '../stats';
import { sizedApp } from './app';
import type { Size, SizedApp } from './app';
import { lineChart } from './chart';
import { cluster } from './cluster';

const SMALLEST: Size = { clients: 1, floors: 0, scopes: 1, routes: 1, issuers: 1 };

const STEPS: Readonly<Record<keyof Size, readonly number[]>> = {
  clients: [1, 100, 10_000, 1_000_000],
  floors: [0, 100, 10_000, 1_000_000],
  // A token of more than 16,384 characters is refused, and node refuses longer headers: more do not fit.
  scopes: [1, 10, 100, 1_000],
  routes: [1, 10, 100, 500],
  issuers: [1, 2, 5, 10],
};

const BATCH = 500;
const BATCHES = 21;

/** CPU time per request in us: the median of the batches, and that of the same app without a gate. */
interface Cost {
  readonly gated: number;
  readonly ungated: number;
}

async function main(): Promise<void> {
  const rows: (string | number)[][] = [];
  const lines = new Map<string, readonly { readonly size: number; readonly cost: number }[]>();
  for (const [what, sizes] of Object.entries(STEPS)) {
    const points: { size: number; cost: number }[] = [];
    for (const size of sizes) {
      process.stderr.write(`${what}: ${size}\n`);
      const { gated, ungated } = await costOf({ ...SMALLEST, [what]: size });
      rows.push([what, size.toLocaleString('en'), round(gated), round(ungated), round(gated - ungated)]);
      points.push({ size, cost: gated - ungated });
    }
    lines.set(what, points);
  }
  console.log(table(['', 'how many', 'with the gate, us', 'without, us', 'the gate, us'], rows));
  const title = 'What the gate costs per request, in us of CPU time, while something grows';
  writeFileSync(join(__dirname, '../../docs/growth.svg'), lineChart(title, lines));
}

/** Both apps by turns, so that what else happens on the machine meets both. */
async function costOf(size: Size): Promise<Cost> {
  const [gated, ungated] = [await sizedApp(size, true), await sizedApp({ ...size, floors: 0, clients: 1 }, false)];
  const clients = Array.from({ length: BATCH }, (_, index) => Math.floor((index * size.clients) / BATCH));
  const tokens = clients.map((client) => `Bearer ${gated.token(client)}`);
  const costs: { gated: number[]; ungated: number[] } = { gated: [], ungated: [] };
  for (let batch = 0; batch < BATCHES + 5; batch++) {
    const [one, other] = [await batchOf(gated, tokens), await batchOf(ungated, tokens)];
    // The first ones warm the compiler and the cache.
    if (batch < 5) continue;
    costs.gated.push(one);
    costs.ungated.push(other);
  }
  return { gated: median(costs.gated), ungated: median(costs.ungated) };
}

async function batchOf({ app, path }: SizedApp, tokens: readonly string[]): Promise<number> {
  const before = process.cpuUsage();
  for (const token of tokens) {
    const status = await pass(app, token, path);
    if (status !== 200) throw new Error(`expected 200, got ${status}`);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / tokens.length;
}

void main()
  .then(cluster)
  .then((scaling) => console.log(`\n${scaling}`))
  .then(() => process.exit(0));
