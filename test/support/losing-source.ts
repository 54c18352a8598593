import type { GenerationSource } from '../../src/generation';

/** A source that can lose everything, and that refuses what a test says. */
export function losingSource(): { source: GenerationSource; lose: () => void; refuse: (reason?: Error) => void } {
  const floors = new Map<string, number>();
  let [sentinel, refusal]: [number | undefined, Error | undefined] = [undefined, undefined];
  const source: GenerationSource = {
    read: () => Promise.resolve({ floors: [...floors], nowMs: 0 }),
    publish: (clientId, floor) =>
      refusal ? Promise.reject(refusal) : Promise.resolve(void floors.set(clientId, floor)),
    sentinel: {
      read: () => Promise.resolve(sentinel),
      write: (generation) => Promise.resolve(void (sentinel = generation)),
    },
  };
  function lose(): void {
    floors.clear();
    sentinel = undefined;
  }
  return { source, lose, refuse: (reason) => void (refusal = reason) };
}
