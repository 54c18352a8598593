import { backOffMs } from '../core/clock';
import type { BackOffBounds, Clock, Schedule, Timer } from '../core/clock';
import type { Logger } from '../core/logger';
import type { Floors } from './floors';
import type { Freshness } from './freshness';
import type { GenerationSource } from './source';
import { describeFailure } from './source-error';
import { SourceReader } from './source-reader';
import { Watcher } from './watcher';

/** How one source is followed. */
export interface FollowerOptions {
  readonly source: GenerationSource;
  readonly floors: Floors;
  readonly freshness: Freshness;
  /** Fields that say in every log line which source this is about. */
  readonly fields: object;
  readonly maxStalenessMs: number;
  readonly pollMs: number;
  readonly readTimeoutMs: number;
  readonly overlapMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** Hints may keep a source busy for half of the time; a slow response holds them back for this long at most. */
const LONGEST_GAP_MS = 1_000;

/**
 * Follows one source: watch, then read, then read again on every hint and at the latest after `pollMs`. One read at a
 * time; failures are retried with back-off, often enough to recover inside `maxStalenessMs`.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #reader: SourceReader;
  readonly #watcher: Watcher;
  readonly #retry: BackOffBounds;
  readonly #pollMs: number;
  /** From the start on, and later while a read is under way. */
  #busy = true;
  #hinted = false;
  #closed = false;
  #timer: Timer | undefined;
  #endedMs = 0;
  #gapMs = 0;
  #failuresInRow = 0;
  #announceReady: () => void = () => undefined;
  /** Reads that were complete. */
  reads = 0;
  /** Reads that failed. */
  failures = 0;
  /** Why the last read failed; `undefined` after a complete one. */
  lastError: string | undefined;
  /** Resolves after the first complete read. */
  readonly ready = new Promise<void>((resolve) => (this.#announceReady = resolve));

  constructor(options: FollowerOptions) {
    const { floors, source, schedule, overlapMs, maxStalenessMs } = options;
    this.#options = options;
    this.#reader = new SourceReader({ source, floors, timeoutMs: options.readTimeoutMs, overlapMs, schedule });
    this.#watcher = new Watcher({ ...options, timeoutMs: options.readTimeoutMs, wake: () => this.wake() });
    this.#retry = { firstMs: FIRST_RETRY_MS, longestMs: Math.min(LONGEST_RETRY_MS, maxStalenessMs / 4) };
    this.#pollMs = Math.min(options.pollMs, maxStalenessMs / 2);
  }

  /** Resolves when the first read has ended, successful or not; never rejects. */
  async start(): Promise<void> {
    // In this order: a change after the watch stands is either in the read or announced by a hint.
    await this.#watcher.start();
    await this.#read();
  }

  /** Takes a hint: reads soon, or once more after the read that is under way. */
  wake(): void {
    if (this.#closed || this.#hinted) return;
    this.#hinted = true;
    if (!this.#busy) this.#readIn(this.#restMs());
  }

  /** Asks for a read because the freshness is in doubt; unlike a hint it does not cut a back-off short. */
  refresh(): void {
    if (!this.#busy && this.#failuresInRow === 0) this.wake();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#reader.close();
    this.#watcher.close();
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    const { clock, freshness } = this.#options;
    const startedMs = clock();
    this.#hinted = false;
    this.#busy = true;
    // Ahead of its time this clock may have trimmed floors that still matter: get them all again.
    if (freshness.clockSteppedBack) this.#reader.startOver();
    try {
      await this.#reader.read();
      this.#succeeded(startedMs);
    } catch (error) {
      this.#failed(error);
    }
    this.#busy = false;
    this.#endedMs = clock();
    this.#gapMs = clamp(this.#endedMs - startedMs, LONGEST_GAP_MS);
    this.#plan();
  }

  #succeeded(startedMs: number): void {
    const { floors, freshness, logger, fields } = this.#options;
    freshness.readStartedAt(startedMs);
    if (this.#failuresInRow > 0) {
      logger.info({ ...fields, failures: this.#failuresInRow }, 'generations can be read again');
    }
    this.#failuresInRow = 0;
    this.lastError = undefined;
    this.reads++;
    floors.trimWhenDue(startedMs);
    this.#announceReady();
  }

  #failed(error: unknown): void {
    const { freshness, logger, fields } = this.#options;
    this.failures++;
    this.#failuresInRow++;
    // The retry is the read that a hint during this one has asked for; later hints count anew.
    this.#hinted = false;
    this.lastError = describeFailure(error);
    if (this.#failuresInRow > 1) return;
    logger.warn({ ...fields, detail: this.lastError, ageMs: freshness.ageMs }, 'generations cannot be read');
  }

  #plan(): void {
    const { random } = this.#options;
    if (this.#failuresInRow > 0) this.#readIn(backOffMs(this.#failuresInRow, this.#retry, random));
    // Never immediately: a source that hints at its own reads must not starve the process.
    else if (this.#hinted) this.#readIn(Math.max(1, this.#gapMs));
    // Spread by a tenth, so that a fleet does not poll in step.
    else this.#readIn(this.#pollMs * (1 - random() / 10));
  }

  #readIn(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    if (delayMs <= 0) void this.#read();
    else this.#timer = this.#options.schedule(() => void this.#read(), delayMs);
  }

  /** What is left of the pause after the last read. */
  #restMs(): number {
    const pauseMs = this.#failuresInRow > 0 ? this.#retry.firstMs : this.#gapMs;
    return clamp(this.#endedMs + pauseMs - this.#options.clock(), pauseMs);
  }
}

function clamp(value: number, largest: number): number {
  return Math.min(largest, Math.max(0, value));
}
