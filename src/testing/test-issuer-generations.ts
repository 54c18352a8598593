import type { Clock } from '../core/clock';
import { FIRST_TIME_MS } from '../generation/generation';
import type { LiveSource } from '../generation/live-source';
import { memoryGenerations } from '../generation/memory';

/** The generations of the clients of a test issuer. */
export interface TestGenerations {
  /** What a gate needs to see every bump with its next request. */
  readonly source: LiveSource & Required<Pick<LiveSource, 'watch'>>;
  /** The generation that new tokens of a client carry. */
  of(clientId: string): number;
  /** The client credential has changed: answers its new generation. */
  bump(clientId: string): number;
}

/** Clients begin long ago, so that a clock that is set back finds no generation ahead of it. */
const FIRST_GENERATION = FIRST_TIME_MS;

/** Makes generations that are kept in memory. */
export function testGenerations(clock: Clock): TestGenerations {
  const memory = memoryGenerations({ clock });
  const floors = new Map<string, number>();

  function generationOf(clientId: string): number {
    return floors.get(clientId) ?? FIRST_GENERATION;
  }

  return {
    source: { read: memory.read, watch: memory.watch, floorOf: (clientId) => floors.get(clientId) },
    of: generationOf,
    bump(clientId) {
      const generation = Math.max(generationOf(clientId) + 1, Math.floor(clock()));
      floors.set(clientId, generation);
      void memory.publish(clientId, generation);
      return generation;
    },
  };
}
