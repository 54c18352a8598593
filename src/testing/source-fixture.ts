import type { GenerationSource } from '../generation/source';

/** One source under test, on an empty store of its own. */
export interface GenerationSourceFixture {
  readonly source: GenerationSource;
  /** How the test writes where the source has no `publish`: resolved means durable and readable. */
  publish?(clientId: string, generation: number): Promise<void>;
  /** A second source on the same store, as another process would open it; the case that asks for it closes it. */
  another?(): Promise<GenerationSource>;
  /** Cuts every connection of the source, as a restart of the store does; the source may connect again at once. */
  disconnect?(): Promise<void>;
  /** Closes the source and removes its store. */
  close(): Promise<void>;
}

/** What the cases work with. */
export interface SourceBench {
  readonly fixture: GenerationSourceFixture;
  readonly source: GenerationSource;
  /** Longest time for a hint, a close or a recovery, in ms. */
  readonly timeoutMs: number;
  readonly publish: (clientId: string, generation: number) => Promise<void>;
}

/** A sentence about sources, with its proof. */
export interface SourceTest {
  readonly name: string;
  readonly test: (bench: SourceBench) => Promise<void>;
}

/**
 * Puts a fixture on the bench.
 *
 * @throws TypeError when there is no way to write into its store.
 */
export function benchOf(fixture: GenerationSourceFixture, timeoutMs: number): SourceBench {
  const { source } = fixture;
  if (!fixture.publish && !source.publish) {
    throw new TypeError('generationSourceCases(): the source has no publish(), so the fixture must have one');
  }
  return {
    fixture,
    source,
    timeoutMs,
    async publish(clientId, generation) {
      await (fixture.publish ? fixture.publish(clientId, generation) : source.publish?.(clientId, generation));
    },
  };
}
