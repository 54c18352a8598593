import { withTimeLimit } from '../../core/time-limit';
import type { Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { backOffMs } from '../../core/back-off';
import type { Floor, GenerationSource } from '../../generation/source';
import { describeFailure, noResponse } from '../../generation/source-error';

/** Tells a source about floors, until it has them. */
export interface Publisher {
  /**
   * Publishes; resolves after the first attempt, whatever came of it. The floors are durable in the token server
   * already: a source that is down must not fail the change, it is told again until it answers.
   */
  publish(floors: readonly Floor[]): Promise<void>;
  /** Whether the source has yet to take a floor of this client. */
  owes(clientId: string): boolean;
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
/** Floors on their way at the same time. */
const BATCH = 100;

/** Makes the publisher to one source; without a source it does nothing. */
export function createPublisher({ source, schedule, logger }: PublisherOptions): Publisher {
  const owed = new Map<string, number>();
  let failures = 0;
  let retry: Timer | undefined;
  let closed = false;

  async function publish(floors: readonly Floor[]): Promise<void> {
    if (!source?.publish || closed) return;
    for (const [clientId, generation] of floors) owed.set(clientId, Math.max(generation, owed.get(clientId) ?? 0));
    await payAll(floors.map(([clientId]) => clientId));
  }

  /** What the source does not take now is owed still. */
  async function payAll(clientIds: readonly string[]): Promise<void> {
    for (let at = 0; at < clientIds.length && !closed; at += BATCH) {
      const batch = clientIds.slice(at, at + BATCH);
      const outcomes = await Promise.allSettled(batch.map(pay));
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (!failed) continue;
      batch.forEach(moveToEnd);
      return tryLater(failed.reason);
    }
    if (failures > 0) recovered();
  }

  /** What a source refuses, for whatever reason, must not stand in the way of the rest. */
  function moveToEnd(clientId: string): void {
    const generation = owed.get(clientId);
    if (generation === undefined) return;
    owed.delete(clientId);
    owed.set(clientId, generation);
  }

  async function pay(clientId: string): Promise<void> {
    const generation = owed.get(clientId);
    if (generation === undefined) return;
    // A source may throw where it should reject.
    const attempt = Promise.resolve().then(() => source?.publish?.(clientId, generation));
    await withTimeLimit(attempt, LONGEST_ATTEMPT_MS, schedule, noResponse);
    if (owed.get(clientId) === generation) owed.delete(clientId);
  }

  /** One line per outage: a source can be down for a night. */
  function tryLater(reason: unknown): void {
    failures++;
    if (failures === 1) {
      const fields = { owed: owed.size, detail: describeFailure(reason) };
      logger.warn(fields, 'generations could not be published, they are tried again until the source takes them');
    }
    retryIn(backOffMs(failures, PAUSES, Math.random));
  }

  function recovered(): void {
    logger.info({ owed: owed.size, failures }, 'generations can be published again');
    failures = 0;
    retry?.cancel();
    if (owed.size > 0) retryIn(0);
  }

  function retryIn(delayMs: number): void {
    retry?.cancel();
    if (!closed) retry = schedule(() => void payAll([...owed.keys()]), delayMs);
  }

  return {
    publish,
    owes: (clientId) => owed.has(clientId),
    close() {
      closed = true;
      retry?.cancel();
    },
  };
}
