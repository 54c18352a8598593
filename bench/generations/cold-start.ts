/** A resource server that starts: reads the source at argv[2] with its argv[3] floors, then waits for a burst of changes. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { generationsFromUrl } from '../../src/generation/from-url';
import { GenerationVerifier } from '../../src/generation/verifier';
import { systemClock, systemSchedule } from '../../src/core/clock';
import { consoleLogger } from '../../src/core/logger';
import { preciseNow } from './messages';
import type { ColdStartFigures, FromColdStart, ToColdStart } from './messages';

const [url = '', count = ''] = process.argv.slice(2);
const FLOORS = Number(count);
const LOOKUPS = 1_000_000;
const CHECK_EVERY_MS = 5;

async function main(): Promise<void> {
  await loadClient();
  const before = usedMegabytes();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  const verifier = startVerifier();
  await verifier.ready();
  // A read that took longer than `maxStalenessMs` is followed by another one, of what has moved.
  while (verifier.status().source !== 'fresh') await new Promise((resolve) => setTimeout(resolve, 10));
  const readSeconds = (performance.now() - startedMs) / 1000;
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  const { floors } = verifier.status();
  if (floors < FLOORS) throw new Error(`only ${floors} floors arrived`);
  const rss = process.memoryUsage.rss() / 1_048_576;

  function recheck(clientId: string, generation: number): boolean {
    try {
      verifier.recheck(clientId, generation);
      return true;
    } catch {
      return false;
    }
  }

  function lookupNs(): number {
    const ids = Array.from({ length: 1_000 }, (_, index) => `client-${Math.floor((index * FLOORS) / 1_000)}`);
    const now = Date.now();
    const started = process.hrtime.bigint();
    for (let index = 0; index < LOOKUPS; index++) recheck(ids[index % 1_000] as string, now);
    return Number(process.hrtime.bigint() - started) / LOOKUPS;
  }

  process.on('message', ({ clientIds, generation }: ToColdStart) => {
    let refused = 0;
    const timer = setInterval(() => {
      // A floor never falls: each client is asked about until it is refused.
      while (refused < clientIds.length && !recheck(clientIds[refused] as string, generation)) refused++;
      if (refused < clientIds.length) return;
      clearInterval(timer);
      tell({ refusedAt: preciseNow() });
    }, CHECK_EVERY_MS);
  });
  const figures: ColdStartFigures = {
    readSeconds,
    cpuSeconds: (user + system) / 1e6,
    // The histogram counts from one tick to the next: its resolution is part of every value.
    blockMs: delay.max / 1e6 - 1,
    megabytes: usedMegabytes() - before,
    rss,
    lookupNs: lookupNs(),
  };
  tell({ figures });
}

/** Compiling TypeScript and loading a client are no part of the read. */
async function loadClient(): Promise<void> {
  const source = generationsFromUrl(url);
  await source.reader().next(0);
  await source.close?.();
}

function startVerifier(): GenerationVerifier {
  return new GenerationVerifier({
    issuer: 'https://login.test',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    learn: true,
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

function tell(message: FromColdStart): void {
  process.send?.(message);
}

process.on('disconnect', () => process.exit());
main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
