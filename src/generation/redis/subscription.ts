import { withTimeLimit } from '../../core/clock';
import type { Schedule } from '../../core/clock';
import { redisFailure } from './commands';
import type { RedisConnection } from './connection';
import { SourceError, noResponse } from '../source-error';

/** What one subscription needs. */
export interface RedisSubscriptionOptions {
  /** Used by this subscription only, and closed with it. */
  readonly connection: RedisConnection;
  readonly channel: string;
  /** The source's clock: strictly increasing. */
  readonly now: () => number;
  readonly timeoutMs: number;
  readonly schedule: Schedule;
  readonly wake: () => void;
  /** Called once if the subscription ends by itself. */
  readonly lost: (error: unknown) => void;
}

/** Messages that are remembered: a read from before the oldest one reads the whole set. */
const MAX_MESSAGES = 100_000;
/** A healthy server responds within one round trip; after this the whole set is read instead. */
const PING_TIMEOUT_MS = 1_000;

/**
 * One subscription, and the clients that were published since it was established. Redis delivers messages in order or
 * breaks the connection, so no published client is missing.
 */
export class RedisSubscription {
  readonly #options: RedisSubscriptionOptions;
  /** The clients of the last messages, and when each message came by the source's clock, which orders them. */
  #clientIds: string[] = [];
  #timesMs: number[] = [];
  #sinceMs = Infinity;
  #ended = false;

  constructor(options: RedisSubscriptionOptions) {
    this.#options = options;
    options.connection.onBreak((error) => this.end(redisFailure('the subscription was cut', error)));
  }

  /** Resolves once the subscription is established. @throws SourceError */
  async start(): Promise<void> {
    const { connection, channel, now, timeoutMs, schedule } = this.#options;
    try {
      const subscribed = connection.subscribe(channel, (clientId) => this.#take(clientId));
      await withTimeLimit(Promise.resolve(subscribed), timeoutMs, schedule, noResponse);
    } catch (error) {
      this.stop();
      throw redisFailure('SUBSCRIBE', error);
    }
    if (this.#ended) throw new SourceError('Redis: SUBSCRIBE: closed');
    this.#sinceMs = now();
  }

  /** Whether this subscription has received, or will receive, every client published at or after a time. */
  covers(sinceMs: number): boolean {
    return !this.#ended && sinceMs >= this.#sinceMs;
  }

  /** The clients that were published since a time, as far as their messages have arrived. */
  receivedSince(sinceMs: number): string[] {
    return [...new Set(this.#clientIds.slice(firstFrom(this.#timesMs, sinceMs)))];
  }

  /**
   * Resolves once every message that was published before this call has arrived: the response to a PING comes after them.
   *
   * @throws SourceError when the server does not respond on this connection.
   */
  async catchUp(): Promise<void> {
    const { connection, timeoutMs, schedule } = this.#options;
    try {
      await withTimeLimit(connection.send(['PING']), Math.min(timeoutMs, PING_TIMEOUT_MS), schedule, noResponse);
    } catch (error) {
      throw redisFailure('PING', error);
    }
  }

  /** Ends a broken subscription; `lost` makes the caller watch again. */
  end(error: unknown): void {
    if (this.#ended) return;
    const wasEstablished = this.#sinceMs !== Infinity;
    this.stop();
    if (wasEstablished) this.#options.lost(error);
  }

  stop(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#clientIds = [];
    this.#timesMs = [];
    this.#options.connection.close();
  }

  #take(clientId: string): void {
    if (this.#ended) return;
    const { now, wake } = this.#options;
    if (this.#timesMs.length >= MAX_MESSAGES) this.#forgetHalf();
    this.#clientIds.push(clientId);
    this.#timesMs.push(now());
    wake();
  }

  #forgetHalf(): void {
    this.#clientIds = this.#clientIds.slice(MAX_MESSAGES / 2);
    this.#timesMs = this.#timesMs.slice(MAX_MESSAGES / 2);
    this.#sinceMs = this.#timesMs[0] as number;
  }
}

/** Index of the first of the ascending times that is not before another, by halving. */
function firstFrom(timesMs: readonly number[], sinceMs: number): number {
  let [low, high] = [0, timesMs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((timesMs[middle] as number) < sinceMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
