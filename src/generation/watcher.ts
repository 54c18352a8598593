import { backOffMs, withTimeLimit } from '../core/clock';
import type { BackOffBounds, Clock, Schedule, Timer } from '../core/clock';
import type { Logger } from '../core/logger';
import type { GenerationSource } from './source';
import { describeFailure, noResponse } from './source-error';

/** How one source is watched. */
export interface WatcherOptions {
  readonly source: GenerationSource;
  /** Fields that say in every log line which source this is about. */
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

/** Keeps the watch of one source standing: what is refused, hangs or is lost is asked for again after a pause. */
export class Watcher {
  readonly #options: WatcherOptions;
  #attempt = 0;
  #failures = 0;
  #stoodSinceMs = 0;
  #stop: (() => void) | undefined;
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /** Resolves once the watch stands or its first attempt has failed; never rejects. */
  async start(): Promise<void> {
    const { source, clock, schedule, timeoutMs } = this.#options;
    if (!source.watch) return;
    const attempt = ++this.#attempt;
    const watching = (async () => source.watch?.(this.#hint, (error) => this.#lost(attempt, error)))();
    try {
      const stop = await withTimeLimit(watching, timeoutMs, schedule, noResponse);
      // Closed, or lost, while the watch was on its way.
      if (attempt !== this.#attempt) return stopQuietly(stop);
      this.#stop = stop ?? (() => undefined);
      this.#stoodSinceMs = clock();
    } catch (error) {
      // A watch that stands after its time was up would be a second one.
      watching.then(stopQuietly, () => undefined);
      this.#lost(attempt, error);
    }
  }

  close(): void {
    this.#closed = true;
    this.#attempt++;
    this.#timer?.cancel();
    stopQuietly(this.#stop);
    this.#stop = undefined;
  }

  readonly #hint = (): void => {
    if (!this.#closed) this.#options.wake();
  };

  #lost(attempt: number, error: unknown): void {
    if (attempt !== this.#attempt) return;
    const { clock, schedule, random, logger, fields } = this.#options;
    this.#attempt++;
    stopQuietly(this.#stop);
    // Only a watch that stood for a while counts as a recovery: a proxy that cuts every stream is not to be hammered.
    if (this.#stop && clock() - this.#stoodSinceMs > BACK_OFF.longestMs) this.#failures = 0;
    this.#stop = undefined;
    this.#failures++;
    if (this.#failures === 1) {
      logger.warn({ ...fields, detail: describeFailure(error) }, 'the watch on generations is lost, polling goes on');
    }
    this.#timer = schedule(() => void this.#again(), backOffMs(this.#failures, BACK_OFF, random));
  }

  async #again(): Promise<void> {
    await this.start();
    if (!this.#stop) return;
    this.#options.logger.info(this.#options.fields, 'the watch on generations stands again');
    // Whatever moved while nobody watched.
    this.#hint();
  }
}

/** A stop function is somebody else's code: what it throws must not reach ours. */
function stopQuietly(stop: (() => void) | undefined): void {
  try {
    stop?.();
  } catch {
    // The watch is given up either way.
  }
}
