/**
 * What a million floors cost one resource server: first read with the gate's own time limit, its CPU time, the longest
 * block of its event loop, memory, lookup, and whether 10,000 changes together arrive complete. `npm run bench:floors`.
 *
 * Options: `--floors N` (1000000), `--engines redis,postgres,relay`; relay: over http, from a relay in another process.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { generationsFromUrl } from '../../src/generation/from-url';
import { generationVerifier } from '../../src/generation/verifier';
import type { GenerationVerifier } from '../../src/generation/verifier';
import { systemClock, systemSchedule } from '../../src/core/clock';
import { consoleLogger } from '../../src/core/logger';
import { round, table } from '../stats';
import { startEngine } from './engines';
import type { Engine } from './engines';

const { values } = parseArgs({
  options: { floors: { type: 'string', default: '1000000' }, engines: { type: 'string', default: 'redis,postgres,relay' } },
});
const FLOORS = Number(values.floors);
const BURST = 10_000;
const LOOKUPS = 1_000_000;

async function main(): Promise<void> {
  if (!globalThis.gc) throw new Error('start node with --expose-gc, as `npm run bench:floors` does');
  const rows = [];
  for (const name of values.engines.split(',')) rows.push(await measure(name));
  console.log(`\n${FLOORS} floors in one resource server\n`);
  const head = [
    'source',
    'first read, s',
    'of it CPU, s',
    'longest event loop block, ms',
    'memory, MB',
    'RSS, MB',
    'lookup, ns',
    'burst of 10,000, s',
  ];
  console.log(table(head, rows));
}

async function measure(name: string): Promise<(string | number)[]> {
  const engine = await startEngine(name, FLOORS);
  const before = usedMegabytes();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const started = performance.now();
  const cpu = process.cpuUsage();
  const verifier = startVerifier(engine.url);
  await verifier.ready();
  // A read that took longer than `maxStalenessMs` is followed by another one, of what has moved.
  while (verifier.status().source !== 'fresh') await new Promise((resolve) => setTimeout(resolve, 10));
  const readSeconds = (performance.now() - started) / 1000;
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  const rss = process.memoryUsage.rss() / 1_048_576;
  const megabytes = usedMegabytes() - before;
  if (verifier.status().floors < FLOORS) throw new Error(`${name}: only ${verifier.status().floors} floors arrived`);
  const lookup = lookupNanoseconds(verifier);
  const burst = await burstSeconds(engine, verifier);
  await verifier.close();
  await engine.stop();
  console.error(`${name}: done`);
  // The histogram counts from one tick to the next: its resolution is part of every value.
  const block = delay.max / 1e6 - 1;
  return [name, ...[readSeconds, (user + system) / 1e6, block, megabytes, rss, lookup, burst].map(round)];
}

function startVerifier(url: string): GenerationVerifier {
  return generationVerifier({
    issuer: 'https://login.test',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    learn: true,
    // What fills the store writes no sentinel.
    source: { ...generationsFromUrl(url), sentinel: undefined },
    ownsSource: true,
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 60_000,
    onStale: 'reject',
    clock: systemClock,
    schedule: systemSchedule,
    logger: consoleLogger,
  });
}

function lookupNanoseconds(verifier: GenerationVerifier): number {
  const ids = Array.from({ length: 1_000 }, (_, index) => `client-${Math.floor((index * FLOORS) / 1_000)}`);
  const now = Date.now();
  const started = process.hrtime.bigint();
  for (let index = 0; index < LOOKUPS; index++) verifier.recheck(ids[index % 1_000] as string, now);
  return Number(process.hrtime.bigint() - started) / LOOKUPS;
}

/** Publishes changes of as many clients together, and waits until every one is refused. */
async function burstSeconds(engine: Engine, verifier: GenerationVerifier): Promise<number> {
  const ids = Array.from({ length: BURST }, (_, index) => `client-${index}`);
  const old = await engine.register(ids);
  const started = performance.now();
  await Promise.all(ids.map((id) => engine.change(id)));
  let arrived = 0;
  while (arrived < BURST) {
    arrived = ids.filter((id) => isRefused(verifier, id, old)).length;
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (performance.now() - started > 30_000) throw new Error(`only ${arrived} of ${BURST} changes arrived`);
  }
  return (performance.now() - started) / 1000;
}

function isRefused(verifier: GenerationVerifier, clientId: string, generation: number): boolean {
  try {
    verifier.recheck(clientId, generation);
    return false;
  } catch {
    return true;
  }
}

function usedMegabytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1_048_576;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
