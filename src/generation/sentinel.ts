import type { Schedule } from '../core/clock';
import { withTimeLimit } from '../core/clock';
import { isGeneration } from './generation';
import type { GenerationSentinel } from './source';
import { SourceError, noResponse } from './source-error';

/** How a sentinel is checked. */
export interface SentinelCheckOptions {
  readonly sentinel: GenerationSentinel;
  /** Longest time for one look, in ms. */
  readonly timeoutMs: number;
  readonly schedule: Schedule;
}

const LOOK_EVERY_MS = 250;
/** 2.5 s: a publisher that runs looks at its store every second and repairs it within 2 s. */
const LOOKS = 10;

const MISSING =
  'the store has no sentinel: it is new or has lost its floors, and its publisher has not written all of them yet; ' +
  'where no publisher writes a sentinel, set the option "sentinel" to false (?sentinel=off in a URL)';

/**
 * Decides whether a process that has just started can trust what it reads. A store that was wiped or restored looks
 * like any other store, so the process waits until its publisher has looked at it too.
 */
export class SentinelCheck {
  readonly #options: SentinelCheckOptions;
  #first: { readonly value: number } | undefined;
  #closed = false;

  constructor(options: SentinelCheckOptions) {
    this.#options = options;
  }

  /** Whether the publisher has raised the sentinel since the first look. */
  async hasMoved(): Promise<boolean> {
    const value = await this.#look();
    const moved = this.#first !== undefined && value > this.#first.value;
    // A sentinel that falls was restored in the meantime: it has to move from there.
    if (!moved) this.#first = { value };
    return moved;
  }

  /**
   * Waits until the sentinel has moved, or long enough to know that no publisher is running.
   *
   * @throws SourceError if the store has no sentinel then
   */
  async wait(): Promise<void> {
    for (let look = 0; look < LOOKS && !this.#closed; look++) {
      await new Promise<void>((resolve) => this.#options.schedule(resolve, LOOK_EVERY_MS));
      if (await this.hasMoved()) return;
    }
    if (this.#first?.value === NONE) throw new SourceError(MISSING);
  }

  close(): void {
    this.#closed = true;
  }

  async #look(): Promise<number> {
    const { sentinel, timeoutMs, schedule } = this.#options;
    const reading = (async () => sentinel.read())();
    const value = await withTimeLimit(reading, timeoutMs, schedule, noResponse);
    return isGeneration(value) ? value : NONE;
  }
}

/** Lower than every sentinel. */
const NONE = -1;
