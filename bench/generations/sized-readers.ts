/**
 * argv[3] readers in one process, each with a gate's verifier and connections of its own to the source at argv[2]: to the
 * store they look like as many processes.
 */
import { generationsFromUrl } from '../../src/generation/from-url';
import { generationVerifier } from '../../src/generation/verifier';
import type { GenerationVerifier } from '../../src/generation/verifier';
import { systemClock, systemSchedule } from '../../src/core/clock';
import { preciseNow } from './messages';
import type { FromReaders, ToReaders } from './messages';

const CHECK_EVERY_MS = 1;
const [url = '', count = '1'] = process.argv.slice(2);
const verifiers = Array.from({ length: Number(count) }, startVerifier);
const waiting = new Set<ToReaders>();
let timer: NodeJS.Timeout | undefined;

process.on('message', (change: ToReaders) => {
  waiting.add(change);
  timer ??= setInterval(check, CHECK_EVERY_MS);
});
void Promise.all(verifiers.map((verifier) => verifier.ready())).then(() => tell({ ready: true }));

function check(): void {
  for (const change of waiting) {
    if (!verifiers.every((verifier) => refuses(verifier, change))) continue;
    waiting.delete(change);
    tell({ round: change.round, at: preciseNow() });
  }
  if (waiting.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

function refuses(verifier: GenerationVerifier, { clientId, generation }: ToReaders): boolean {
  try {
    verifier.recheck(clientId, generation);
    return false;
  } catch {
    return true;
  }
}

function startVerifier(): GenerationVerifier {
  return generationVerifier({
    issuer: 'https://login.test',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    learn: true,
    // What fills the store writes no sentinel.
    source: { ...generationsFromUrl(url), sentinel: undefined },
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 60_000,
    readTimeoutMs: 60_000,
    onStale: 'reject',
    clock: systemClock,
    schedule: systemSchedule,
    logger: { info() {}, warn: console.error, error: console.error },
  });
}

function tell(message: FromReaders): void {
  process.send?.(message);
}
