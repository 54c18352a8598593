import type { Schedule } from '../../core/clock';
import { withTimeLimit } from '../../core/clock';
import { redisFailure } from './commands';
import type { RedisConnection } from './connection';
import { SourceError, noResponse } from '../source-error';

/** What one subscription needs. */
export interface RedisHintsOptions {
  /** A connection of its own, closed with it. */
  readonly connection: RedisConnection;
  readonly channel: string;
  /** The source's clock: no two answers are the same. */
  readonly now: () => number;
  readonly timeoutMs: number;
  readonly schedule: Schedule;
  readonly wake: () => void;
  /** Called once, when the subscription has ended by itself. */
  readonly lost: (error: unknown) => void;
}

/** More clients than this are read with the whole set. */
const MOST_CHANGES = 100_000;
/** A healthy server answers within one round trip; more than this is not worth a read's time. */
const LONGEST_PING_MS = 1_000;

/**
 * One subscription, and which clients it has named since when. Redis delivers messages in order or breaks the
 * connection, so while it stands nothing that was published is missing.
 */
export class RedisHints {
  readonly #options: RedisHintsOptions;
  /** When each client was named last, by the source's clock. */
  readonly #named = new Map<string, number>();
  #sinceMs = Infinity;
  #ended = false;

  constructor(options: RedisHintsOptions) {
    this.#options = options;
    options.connection.onBreak((error) => this.end(redisFailure('the subscription was cut', error)));
  }

  /** Resolves once the subscription stands. @throws SourceError */
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

  /** Whether every client that was published at or after a time has been, or will be, named here. */
  covers(sinceMs: number): boolean {
    return !this.#ended && sinceMs >= this.#sinceMs;
  }

  /** When the coverage began, by the source's clock. */
  get coveredSinceMs(): number {
    return this.#sinceMs;
  }

  /** Lets the coverage begin anew, so that whoever asks from an earlier time reads everything. */
  restart(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#named.clear();
  }

  /**
   * Returns which clients were named at or after a time: all that were published before this was called are among
   * them, since the response to a PING comes after every message that was sent before it.
   *
   * @throws SourceError when the server does not answer here.
   */
  async namedSince(sinceMs: number): Promise<string[]> {
    const { connection, timeoutMs, schedule } = this.#options;
    try {
      await withTimeLimit(connection.send(['PING']), Math.min(timeoutMs, LONGEST_PING_MS), schedule, noResponse);
    } catch (error) {
      throw redisFailure('PING', error);
    }
    const named: string[] = [];
    for (const [clientId, namedMs] of this.#named) if (namedMs >= sinceMs) named.push(clientId);
    return named;
  }

  /** Ends the subscription by itself: whoever watches asks for another one. */
  end(error: unknown): void {
    if (this.#ended) return;
    const stood = this.#sinceMs !== Infinity;
    this.stop();
    if (stood) this.#options.lost(error);
  }

  stop(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#named.clear();
    this.#options.connection.close();
  }

  #take(clientId: string): void {
    if (this.#ended) return;
    const { now, wake } = this.#options;
    if (this.#named.size >= MOST_CHANGES) this.restart(now());
    this.#named.set(clientId, now());
    wake();
  }
}
