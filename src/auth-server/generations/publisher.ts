import { backOffMs, withTimeLimit } from '../../core/clock';
import type { Timer } from '../../core/clock';
import type { Floor } from '../../generation/source';
import { describeFailure, noResponse } from '../../generation/source-error';
import type { AuthServerSettings } from '../options';

/** Publishes floors to the generation source, and repeats that until the source has them. */
export interface Publisher {
  /**
   * Publishes; resolves after the first attempt, successful or not. The floors are durable in the token server already:
   * a source that is down must not fail the change, so the floor stays pending.
   */
  publish(floors: readonly Floor[]): Promise<void>;
  /** Tries all pending floors now. */
  retry(): Promise<void>;
  /** Whether the source lacks a floor of this client, or of any client. */
  isPending(clientId?: string): boolean;
  close(): void;
}

/** A response to a PATCH waits no longer than this for a source that hangs. */
const ATTEMPT_TIMEOUT_MS = 2_000;
const PAUSES = { firstMs: 250, longestMs: 30_000 };
/** Floors that are sent concurrently: what PostgreSQL takes in one statement, and Redis within a tenth of a second. */
const BATCH = 1_000;

/** Makes the publisher; without a source it does nothing. */
export function createPublisher({
  generationSource: source,
  schedule,
  logger,
}: Pick<AuthServerSettings, 'generationSource' | 'schedule' | 'logger'>): Publisher {
  const pending = new Map<string, number>();
  let failures = 0;
  let timer: Timer | undefined;
  let closed = false;

  async function publish(floors: readonly Floor[]): Promise<void> {
    if (!source?.publish || closed) return;
    // A late, lower floor must not replace a pending one.
    for (const [clientId, generation] of floors) {
      pending.set(clientId, Math.max(generation, pending.get(clientId) ?? 0));
    }
    await flush(floors.map(([clientId]) => clientId));
  }

  /** Floors that the source does not take now stay pending. */
  async function flush(clientIds: readonly string[]): Promise<void> {
    for (let at = 0; at < clientIds.length && !closed; at += BATCH) {
      const batch = clientIds.slice(at, at + BATCH);
      const outcomes = await Promise.allSettled(batch.map(send));
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failed) return retryLater(failed.reason);
    }
    if (failures > 0) recovered();
  }

  async function send(clientId: string): Promise<void> {
    const generation = pending.get(clientId);
    if (generation === undefined) return;
    // Last in line for the next attempt: a floor that the source refuses must not block the others.
    pending.delete(clientId);
    pending.set(clientId, generation);
    // A source may throw where it should reject.
    const attempt = Promise.resolve().then(() => source?.publish?.(clientId, generation));
    await withTimeLimit(attempt, ATTEMPT_TIMEOUT_MS, schedule, noResponse);
    if (pending.get(clientId) === generation) pending.delete(clientId);
  }

  /** Logs once per outage: a source can be down for a night. */
  function retryLater(reason: unknown): void {
    failures++;
    if (failures === 1) {
      const fields = { pending: pending.size, detail: describeFailure(reason) };
      logger.warn(fields, 'generations could not be published, they are retried until the source takes them');
    }
    retryIn(backOffMs(failures, PAUSES, Math.random));
  }

  function recovered(): void {
    logger.info({ pending: pending.size, failures }, 'generations can be published again');
    failures = 0;
    timer?.cancel();
    if (pending.size > 0) retryIn(0);
  }

  function retryIn(delayMs: number): void {
    timer?.cancel();
    if (!closed) timer = schedule(() => void retry(), delayMs);
  }

  function retry(): Promise<void> {
    return flush([...pending.keys()]);
  }

  return {
    publish,
    retry,
    isPending: (clientId) => (clientId === undefined ? pending.size > 0 : pending.has(clientId)),
    close() {
      closed = true;
      timer?.cancel();
    },
  };
}
