import { withTimeLimit } from '../core/clock';
import type { Schedule, Timer } from '../core/clock';
import { describeFailure, noResponse } from './source-error';

/** How a publisher removes old floors from a store. */
export interface TrimmerOptions {
  /** Removes a bounded number of floors; resolves with whether there are more. */
  readonly trim: () => Promise<boolean>;
  /** Called for the first of several failures in a row. A failure never fails a publish. */
  readonly warn: (detail: string) => void;
  /** Pause after a failure, in ms. */
  readonly pauseAfterFailureMs: number;
  readonly schedule: Schedule;
}

const PAUSE_MS = 1_000;
/** How long `close()` waits for a removal. */
const CLOSE_TIMEOUT_MS = 500;

/** Removes the floors that discard no token any more: after publishes, at most once a second, and on while there are more. */
export class Trimmer {
  readonly #options: TrimmerOptions;
  #requested = false;
  /** Until the next removal may start. */
  #pause: Timer | undefined;
  #running: Promise<void> | undefined;
  #failing = false;
  #closed = false;
  /** `close()` has ended: what fails from then on, fails because of it. */
  #ended = false;

  constructor(options: TrimmerOptions) {
    this.#options = options;
  }

  /** To call after a publish. Returns immediately, never throws. */
  request(): void {
    if (this.#closed) return;
    this.#requested = true;
    if (!this.#pause && !this.#running) this.#rest(0);
  }

  /** Ends after a removal that is due, so that a process which publishes once and ends removes something too. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pause?.cancel();
    if (this.#requested) this.#start();
    const running = Promise.resolve(this.#running);
    await withTimeLimit(running, CLOSE_TIMEOUT_MS, this.#options.schedule, noResponse).catch(() => undefined);
    this.#ended = true;
  }

  #rest(ms: number): void {
    if (this.#closed) return;
    this.#pause = this.#options.schedule(() => {
      this.#pause = undefined;
      if (this.#requested) this.#start();
    }, ms);
  }

  #start(): void {
    this.#requested = false;
    this.#running ??= this.#run().then((pauseMs) => {
      this.#running = undefined;
      this.#rest(pauseMs);
    });
  }

  /** Resolves with the pause after it, in ms. */
  async #run(): Promise<number> {
    const { trim, warn, pauseAfterFailureMs } = this.#options;
    try {
      if (await trim()) this.#requested = true;
      this.#failing = false;
      return PAUSE_MS;
    } catch (error) {
      if (!this.#failing && !this.#ended) warn(describeFailure(error));
      this.#failing = true;
      return pauseAfterFailureMs;
    }
  }
}
