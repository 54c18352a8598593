import { backOffMs, withTimeLimit } from '../core/clock';
import type { BackOffBounds, Clock, Schedule, Timer } from '../core/clock';
import type { Logger } from '../core/logger';
import type { GenerationSource } from './source';
import { describeFailure, noResponse } from './source-error';

/** How the watch of one source is kept open. */
export interface SourceWatchOptions {
  readonly source: GenerationSource;
  /** Fields of every log line, to tell the sources apart. */
  readonly fields: object;
  /** Called when something may have moved, also after every gap in the watch. */
  readonly wake: () => void;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

const BACK_OFF: BackOffBounds = { firstMs: 1_000, longestMs: 30_000 };

/** Keeps the watch of one source open: a watch that is refused, hangs or is lost is opened again after a pause. */
export class SourceWatch {
  readonly #options: SourceWatchOptions;
  /** Of the watch that is open or being opened. */
  #attempt: symbol | undefined;
  #failures = 0;
  #openedMs = 0;
  #stop: (() => void) | undefined;
  #timer: Timer | undefined;

  constructor(options: SourceWatchOptions) {
    this.#options = options;
  }

  /** Resolves once the watch is open or its first attempt has failed; never rejects. */
  async start(): Promise<void> {
    const { source, wake, clock, schedule, timeoutMs } = this.#options;
    if (!source.watch) return;
    const attempt = (this.#attempt = Symbol());
    const watching = (async () => source.watch!(wake, (error) => this.#lost(attempt, error)))();
    try {
      const stop = await withTimeLimit(watching, timeoutMs, schedule, noResponse);
      // Closed, or lost, while the watch was being opened.
      if (attempt !== this.#attempt) return stopQuietly(stop);
      this.#stop = stop ?? (() => undefined);
      this.#openedMs = clock();
    } catch (error) {
      // A watch that opens after the time limit would be a second one.
      watching.then(stopQuietly, () => undefined);
      this.#lost(attempt, error);
    }
  }

  close(): void {
    this.#attempt = undefined;
    this.#timer?.cancel();
    stopQuietly(this.#stop);
    this.#stop = undefined;
  }

  #lost(attempt: symbol, error: unknown): void {
    if (attempt !== this.#attempt) return;
    const { clock, schedule, random, logger, fields } = this.#options;
    this.#attempt = undefined;
    stopQuietly(this.#stop);
    // Only a watch that stayed open for a while resets the back-off: a proxy may cut every stream soon.
    if (this.#stop && clock() - this.#openedMs > BACK_OFF.longestMs) this.#failures = 0;
    this.#stop = undefined;
    this.#failures++;
    if (this.#failures === 1) {
      logger.warn({ ...fields, detail: describeFailure(error) }, 'the watch on generations is lost, polling continues');
    }
    this.#timer = schedule(() => void this.#reopen(), backOffMs(this.#failures, BACK_OFF, random));
  }

  async #reopen(): Promise<void> {
    await this.start();
    if (!this.#stop) return;
    this.#options.logger.info(this.#options.fields, 'the watch on generations is open again');
    // Changes during the gap came without a hint.
    this.#options.wake();
  }
}

/** The stop function belongs to the source: ignore its errors. */
function stopQuietly(stop: (() => void) | undefined): void {
  try {
    stop?.();
  } catch {
    // The watch is abandoned either way.
  }
}
