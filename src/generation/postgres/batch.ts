import type { Floor } from '../source';

/** How floors are sent. */
export interface FloorBatchesOptions {
  /** Sends floors of different clients; resolves once they are durable. */
  readonly send: (floors: readonly Floor[]) => Promise<void>;
  /** Whether the store refused one of the floors, as opposed to failing: then the others are sent without it. */
  readonly isRefusal: (error: unknown) => boolean;
}

/** Calls that wait for one floor. */
interface Waiting {
  generation: number;
  readonly calls: { resolve(): void; reject(error: unknown): void }[];
}

type Batch = readonly (readonly [clientId: string, waiting: Waiting])[];

/** Some 30 ms of work for the store. */
export const MAX_FLOORS = 1_000;

/**
 * Collects the floors that are published while an earlier batch is being written: one transaction for a thousand floors
 * instead of one each. A floor that comes alone is sent immediately.
 */
export class FloorBatches {
  readonly #options: FloorBatchesOptions;
  #waiting = new Map<string, Waiting>();
  #isSending = false;

  constructor(options: FloorBatchesOptions) {
    this.#options = options;
  }

  /** Resolves once the batch with this floor is durable; rejects if it failed. */
  publish(clientId: string, generation: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(clientId) ?? { generation, calls: [] };
      // One statement cannot write a row twice.
      waiting.generation = Math.max(waiting.generation, generation);
      waiting.calls.push({ resolve, reject });
      this.#waiting.set(clientId, waiting);
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    // Not before the caller's turn has ended: it may publish many.
    await Promise.resolve();
    while (this.#waiting.size > 0) await this.#send(this.#next());
    this.#isSending = false;
  }

  #next(): Batch {
    const batch: (readonly [string, Waiting])[] = [];
    for (const entry of this.#waiting) {
      batch.push(entry);
      if (batch.length === MAX_FLOORS) break;
    }
    for (const [clientId] of batch) this.#waiting.delete(clientId);
    return batch;
  }

  /** Never rejects. */
  async #send(batch: Batch): Promise<void> {
    try {
      await this.#options.send(batch.map(([clientId, { generation }]) => [clientId, generation]));
      for (const [, { calls }] of batch) for (const call of calls) call.resolve();
    } catch (error) {
      if (batch.length > 1 && this.#options.isRefusal(error)) {
        const middle = batch.length >> 1;
        await this.#send(batch.slice(0, middle));
        return this.#send(batch.slice(middle));
      }
      for (const [, { calls }] of batch) for (const call of calls) call.reject(error);
    }
  }
}
