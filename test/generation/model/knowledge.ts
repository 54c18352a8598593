import type { Floor } from '../../../src/generation/source';
import { MAX_TOKEN_AGE, MINUTE, TOLERANCE } from './world';

/**
 * How long a floor matters: as long as a token can live that was issued before it, by clocks that are 30 s apart, and
 * then some.
 */
const LIFETIME = MAX_TOKEN_AGE + TOLERANCE + MINUTE;

/** What one process is bound by: the floors that it has applied. */
export class Knowledge {
  readonly #floors = new Map<string, number>();
  /** Highest floor that ever came, aged or not: what a refusal as superseded may rest on. */
  readonly #ever = new Map<string, number>();

  apply(floors: Iterable<Floor>): void {
    for (const [clientId, generation] of floors) {
      for (const known of [this.#floors, this.#ever]) {
        known.set(clientId, Math.max(generation, known.get(clientId) ?? 0));
      }
    }
  }

  /** A clock that runs ahead makes a process drop floors that still matter; the next complete read brings them back. */
  forget(nowMs: number): void {
    for (const [clientId, floor] of this.#floors) {
      if (floor + LIFETIME < nowMs) this.#floors.delete(clientId);
    }
  }

  /** Whether a generation has to be refused as superseded. */
  binds(clientId: string, generation: number): boolean {
    return generation < (this.#floors.get(clientId) ?? 0);
  }

  /** Whether a generation may be refused as superseded. */
  allows(clientId: string, generation: number): boolean {
    return generation < (this.#ever.get(clientId) ?? 0);
  }

  entries(): IterableIterator<Floor> {
    return this.#floors.entries();
  }
}
