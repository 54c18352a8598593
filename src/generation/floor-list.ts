import type { Floor } from './source';

/**
 * Floors in two columns. A million pairs would be a million small arrays that live for one merge; here a pair exists
 * only while somebody looks at it.
 */
export class FloorList implements Iterable<Floor> {
  readonly #clientIds: string[] = [];
  readonly #generations: number[] = [];

  get length(): number {
    return this.#clientIds.length;
  }

  add(clientId: string, generation: number): void {
    this.#clientIds.push(clientId);
    this.#generations.push(generation);
  }

  *[Symbol.iterator](): Generator<Floor, void, undefined> {
    for (const [index, clientId] of this.#clientIds.entries()) yield [clientId, this.#generations[index] as number];
  }
}
