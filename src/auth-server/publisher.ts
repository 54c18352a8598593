import type { Schedule, Timer } from '../core/clock';
import type { Logger } from '../core/logger';
import { backOffMs } from '../generation/back-off';
import type { Floor, GenerationSource } from '../generation/source';
import { within } from '../generation/within';

/** Tells a source about floors, until it has them. */
export interface Publisher {
  /**
   * Publishes; resolves after the first attempt, whatever came of it. The floors are durable in the token server
   * already: a source that is down must not fail the change, it is told again until it answers.
   */
  publish(floors: readonly Floor[]): Promise<void>;
  close(): void;
}

/** How a source is told. */
export interface PublisherOptions {
  readonly source: GenerationSource | undefined;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

/** An answer to a PATCH waits no longer than this for a source that hangs. */
const LONGEST_ATTEMPT_MS = 2_000;
const PAUSES = { firstMs: 250, longestMs: 30_000 };

/** Makes the publisher to one source; without a source it does nothing. */
export function createPublisher({ source, schedule, logger }: PublisherOptions): Publisher {
  const owed = new Map<string, number>();
  let failures = 0;
  let retry: Timer | undefined;
  let closed = false;

  async function publish(floors: readonly Floor[]): Promise<void> {
    if (!source?.publish || closed) return;
    for (const [clientId, generation] of floors) owed.set(clientId, Math.max(generation, owed.get(clientId) ?? 0));
    retry?.cancel();
    const outcomes = await Promise.allSettled([...owed].map(pay));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    failures = failed ? failures + 1 : 0;
    if (failed) tryLater(failed.reason);
  }

  async function pay([clientId, generation]: Floor): Promise<void> {
    // A source may throw where it should reject.
    const attempt = Promise.resolve().then(() => source?.publish?.(clientId, generation));
    await within(attempt, LONGEST_ATTEMPT_MS, schedule);
    if (owed.get(clientId) === generation) owed.delete(clientId);
  }

  function tryLater(reason: unknown): void {
    logger.warn({ owed: owed.size, failures, error: String(reason) }, 'generations could not be published, will retry');
    retry?.cancel();
    if (!closed) retry = schedule(() => void publish([]), backOffMs(failures, PAUSES, Math.random));
  }

  return {
    publish,
    close() {
      closed = true;
      retry?.cancel();
    },
  };
}
