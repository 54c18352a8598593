import type { LossWindow } from './stores';

interface Acknowledgement {
  readonly generation: number;
  readonly atMs: number;
}

interface Page {
  /** Highest number that was given out: unlike an acknowledged floor it may be in the store or not. */
  issued: number;
  /** In ascending order of both. */
  acknowledged: readonly Acknowledgement[];
}

/** What publishers were told about every client: the truth that stores and readers are checked against. */
export class Book {
  readonly #pages = new Map<string, Page>();
  /** Acknowledged changes. */
  changes = 0;
  /** Acknowledged changes that the store no longer had to keep. */
  excused = 0;

  constructor(readonly clientIds: readonly string[]) {
    for (const clientId of clientIds) this.#pages.set(clientId, { issued: 0, acknowledged: [] });
  }

  /** The next generation of a client. */
  issue(clientId: string): number {
    const page = this.#page(clientId);
    return (page.issued = Math.max(page.issued + 1, Date.now()));
  }

  /** `publish` has resolved. */
  acknowledge(clientId: string, generation: number): void {
    const page = this.#page(clientId);
    // Floors merge by max: a repeated one says nothing new.
    if ((page.acknowledged.at(-1)?.generation ?? 0) >= generation) return;
    page.acknowledged = [...page.acknowledged.slice(-20), { generation, atMs: Date.now() }];
    this.changes++;
  }

  /** The store was killed and does not promise to have what it acknowledged in this time. */
  excuse({ fromMs, untilMs }: LossWindow): void {
    for (const page of this.#pages.values()) {
      const kept = page.acknowledged.filter(({ atMs }) => atMs < fromMs || atMs > untilMs);
      this.excused += page.acknowledged.length - kept.length;
      page.acknowledged = kept;
    }
  }

  /** The floor that everybody must know whose last complete read began at `readMs`. */
  floorBefore(clientId: string, readMs = Infinity): number | undefined {
    return this.#page(clientId).acknowledged.findLast(({ atMs }) => atMs < readMs)?.generation;
  }

  /** Clients whose floor is lower in a read that began at `readMs` than what was acknowledged before. */
  missingFrom(floors: ReadonlyMap<string, number>, readMs: number): string[] {
    return this.clientIds.filter((clientId) => (floors.get(clientId) ?? 0) < (this.floorBefore(clientId, readMs) ?? 0));
  }

  #page(clientId: string): Page {
    const page = this.#pages.get(clientId);
    if (!page) throw new Error(`${clientId} is not in the book`);
    return page;
  }
}
