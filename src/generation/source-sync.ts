import { backOffMs } from '../core/clock';
import type { BackOffBounds, Clock, Schedule, Timer } from '../core/clock';
import type { Logger } from '../core/logger';
import type { GenerationSource } from './source';
import { describeFailure } from './source-error';
import { SourceReader } from './source-reader';
import type { FloorTarget } from './source-reader';
import { SourceWatch } from './source-watch';

/** How the floors are kept in sync with one source. */
export interface SourceSyncOptions {
  readonly source: GenerationSource;
  readonly floors: FloorTarget;
  readonly freshness: Freshness;
  /** Fields of every log line, to tell the sources apart. */
  readonly fields: object;
  readonly maxStalenessMs: number;
  readonly pollMs: number;
  readonly readTimeoutMs: number;
  readonly overlapMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
  /** Called after each complete read. */
  readonly onRead?: () => void;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** After a hint, the pause before the next read is as long as the last read took, up to this. */
const LONGEST_GAP_MS = 1_000;

/**
 * Keeps the floors in sync with one source: watch, then read, then read again on every hint and at the latest after
 * `pollMs`. One read at a time; failed reads are retried with back-off, often enough to recover inside `maxStalenessMs`.
 */
export class SourceSync {
  readonly #options: SourceSyncOptions;
  readonly #reader: SourceReader;
  readonly #watch: SourceWatch;
  readonly #retry: BackOffBounds;
  readonly #pollMs: number;
  /** True from the start until the first read has ended, and during every later read. */
  #busy = true;
  #hinted = false;
  #closed = false;
  #timer: Timer | undefined;
  #endedMs = 0;
  #gapMs = 0;
  #failuresInRow = 0;
  #resolveReady: () => void = () => undefined;
  /** Complete reads. */
  reads = 0;
  /** Failed reads. */
  failures = 0;
  /** Why the last read failed; `undefined` after a complete one. */
  lastError: string | undefined;
  /** Resolves after the first complete read. */
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));

  constructor(options: SourceSyncOptions) {
    const { floors, source, schedule, overlapMs, maxStalenessMs } = options;
    this.#options = options;
    this.#reader = new SourceReader({ source, floors, timeoutMs: options.readTimeoutMs, overlapMs, schedule });
    this.#watch = new SourceWatch({ ...options, timeoutMs: options.readTimeoutMs, wake: () => this.wake() });
    this.#retry = { firstMs: FIRST_RETRY_MS, longestMs: Math.min(LONGEST_RETRY_MS, maxStalenessMs / 4) };
    this.#pollMs = Math.min(options.pollMs, maxStalenessMs / 2);
  }

  /** Resolves when the first read has ended, successful or not; never rejects. */
  async start(): Promise<void> {
    // In this order: a change after the watch is established is either in the read or announced by a hint.
    await this.#watch.start();
    await this.#read();
  }

  /** Handles a hint: reads soon, or once more after the current read. */
  wake(): void {
    if (this.#hinted) return;
    this.#hinted = true;
    if (!this.#busy) this.#readIn(this.#remainingPauseMs());
  }

  /** Reads soon because the floors are stale; unlike a hint it does not shorten a back-off. */
  refresh(): void {
    if (!this.#busy && this.#failuresInRow === 0) this.wake();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#reader.close();
    this.#watch.close();
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    const { clock, freshness } = this.#options;
    const startedMs = clock();
    this.#hinted = false;
    this.#busy = true;
    // While this clock was ahead it may have trimmed floors that still matter: read them all again.
    if (freshness.clockSteppedBack) this.#reader.startOver();
    try {
      const ageMs = await this.#reader.read();
      this.#succeeded(startedMs, ageMs);
    } catch (error) {
      this.#failed(error);
    }
    this.#busy = false;
    this.#endedMs = clock();
    const tookMs = this.#endedMs - startedMs;
    this.#gapMs = clamp(tookMs, LONGEST_GAP_MS);
    // A first read of many floors can take longer than they are fresh; the next one asks only for what has moved.
    this.#hinted ||= tookMs > this.#options.maxStalenessMs;
    this.#plan();
  }

  #succeeded(startedMs: number, ageMs: number): void {
    const { floors, freshness, logger, fields } = this.#options;
    freshness.readStartedAt(startedMs - ageMs);
    if (this.#failuresInRow > 0) {
      logger.info({ ...fields, failures: this.#failuresInRow }, 'generations can be read again');
    }
    this.#failuresInRow = 0;
    this.lastError = undefined;
    this.reads++;
    floors.trimWhenDue(startedMs);
    this.#resolveReady();
    this.#options.onRead?.();
  }

  #failed(error: unknown): void {
    const { freshness, logger, fields } = this.#options;
    this.failures++;
    this.#failuresInRow++;
    // The retry covers hints that came during this read.
    this.#hinted = false;
    this.lastError = describeFailure(error);
    if (this.#failuresInRow > 1) return;
    logger.warn({ ...fields, detail: this.lastError, ageMs: freshness.ageMs }, 'generations cannot be read');
  }

  #plan(): void {
    const { random } = this.#options;
    if (this.#failuresInRow > 0) this.#readIn(backOffMs(this.#failuresInRow, this.#retry, random));
    // Never immediately: a source whose reads cause hints must not starve the process.
    else if (this.#hinted) this.#readIn(Math.max(1, this.#gapMs));
    // Jitter of a tenth, so that a fleet does not poll in step.
    else this.#readIn(this.#pollMs * (1 - random() / 10));
  }

  #readIn(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    if (delayMs <= 0) void this.#read();
    else this.#timer = this.#options.schedule(() => void this.#read(), delayMs);
  }

  #remainingPauseMs(): number {
    const pauseMs = this.#failuresInRow > 0 ? this.#retry.firstMs : this.#gapMs;
    return clamp(this.#endedMs + pauseMs - this.#options.clock(), pauseMs);
  }
}

function clamp(value: number, largest: number): number {
  return Math.min(largest, Math.max(0, value));
}

/** Age of the last complete read of a source, counted from the start of that read. */
export class Freshness {
  readonly #maxStalenessMs: number;
  readonly #clock: Clock;
  #readMs: number | undefined;

  constructor(maxStalenessMs: number, clock: Clock) {
    this.#maxStalenessMs = maxStalenessMs;
    this.#clock = clock;
  }

  /** Records a complete read. */
  readStartedAt(startedMs: number): void {
    this.#readMs = startedMs;
  }

  /** Age in ms; negative when the clock has stepped back since; `undefined` before the first complete read. */
  get ageMs(): number | undefined {
    return this.#readMs === undefined ? undefined : this.#clock() - this.#readMs;
  }

  /** `starting`: no complete read yet. `stale`: the last one is too old, or its age is unknown. */
  get state(): 'starting' | 'fresh' | 'stale' {
    if (this.#readMs === undefined) return 'starting';
    const ageMs = this.#clock() - this.#readMs;
    // After the clock stepped back the age is unknown, which counts as stale until the next read.
    return ageMs >= 0 && ageMs <= this.#maxStalenessMs ? 'fresh' : 'stale';
  }

  /** Whether the clock has stepped back to before the last complete read. */
  get clockSteppedBack(): boolean {
    return (this.ageMs ?? 0) < 0;
  }
}
