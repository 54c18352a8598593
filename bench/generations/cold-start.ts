/** A resource server that starts: reads the source at argv[2] with its argv[3] floors. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { generationsFromUrl } from '../../src/gate/generation/from-url';
import { Follower } from '../../src/gate/generation/follower';
import { systemClock, systemSchedule } from '../../src/gate/core/clock';
import { consoleLogger } from '../../src/gate/core/logger';
import type { ColdStartFigures } from './messages';

const [url = '', count = ''] = process.argv.slice(2);
const FLOORS = Number(count);

async function main(): Promise<void> {
  await loadClient();
  const before = usedMegabytes();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  const follower = startFollower();
  await follower.ready();
  // A read that took longer than `maxStalenessMs` is followed by another one, of what has moved.
  while (follower.status().source !== 'fresh') await new Promise((resolve) => setTimeout(resolve, 10));
  const readSeconds = (performance.now() - startedMs) / 1000;
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  const { floors } = follower.status();
  if (floors < FLOORS) throw new Error(`only ${floors} floors arrived`);
  const figures: ColdStartFigures = {
    readSeconds,
    cpuSeconds: (user + system) / 1e6,
    // The histogram counts from one tick to the next: its resolution is part of every value.
    blockMs: delay.max / 1e6 - 1,
    megabytes: usedMegabytes() - before,
  };
  process.send?.(figures);
}

/** Compiling TypeScript and loading a client are no part of the read. */
async function loadClient(): Promise<void> {
  const source = generationsFromUrl(url);
  await source.reader().next(0);
  await source.close?.();
}

function startFollower(): Follower {
  return new Follower({
    issuer: 'https://login.test',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    // What fills the log keeps no mark.
    source: { ...generationsFromUrl(url), mark: false },
    ownsSource: true,
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 60_000,
    maxSilenceMs: 900_000,
    onStale: 'reject',
    pollMs: 5_000,
    readTimeoutMs: 5_000,
    random: Math.random,
    clock: systemClock,
    schedule: systemSchedule,
    logger: consoleLogger,
  });
}

function usedMegabytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1_048_576;
}

process.on('disconnect', () => process.exit());
main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
