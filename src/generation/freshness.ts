import type { Clock } from '../core/clock';

/** `starting`: no complete read yet. `stale`: the last one is too old, or its age is unknown. */
export type FreshnessState = 'starting' | 'fresh' | 'stale';

/** Age of the last complete read of a source, counted from the moment at which that read started. */
export class Freshness {
  readonly #maxStalenessMs: number;
  readonly #clock: Clock;
  #readMs: number | undefined;

  constructor(maxStalenessMs: number, clock: Clock) {
    this.#maxStalenessMs = maxStalenessMs;
    this.#clock = clock;
  }

  /** Notes a complete read. */
  readStartedAt(startedMs: number): void {
    this.#readMs = startedMs;
  }

  /** Age in ms; negative when the clock has stepped back since; `undefined` before the first complete read. */
  get ageMs(): number | undefined {
    return this.#readMs === undefined ? undefined : this.#clock() - this.#readMs;
  }

  get state(): FreshnessState {
    const ageMs = this.ageMs;
    if (ageMs === undefined) return 'starting';
    // A clock that stepped back leaves the age unknown: unknown is too old, until the next read.
    return ageMs >= 0 && ageMs <= this.#maxStalenessMs ? 'fresh' : 'stale';
  }

  /** Whether the clock has stepped back behind the last complete read. */
  get clockSteppedBack(): boolean {
    return (this.ageMs ?? 0) < 0;
  }
}
