import { channel } from 'node:diagnostics_channel';
import type { GenerationStatus, IntrospectionStatus, KeyStatus } from './gate-status';

/*
 * What a gate does is published to channels of `node:diagnostics_channel`, and only while there are subscribers. Node
 * reports what a subscriber throws as an uncaught exception: a subscriber must catch its own errors.
 */

/** Gets each `Decision`: the same object as `onDecision`. */
export const decisionChannel = channel('tillgate:decision');
/** Gets an `Activity<KeyStatus>` for each fetch of a key set. */
export const keysChannel = channel('tillgate:keys');
/** Gets an `Activity<GenerationStatus>` for each read of a log of generations. */
export const generationsChannel = channel('tillgate:generations');
/** Gets an `Activity<IntrospectionStatus>` for each call of an introspection endpoint. */
export const introspectionChannel = channel('tillgate:introspection');

/** What a gate did outside of requests, for one issuer. */
export interface Activity<Status> {
  readonly issuer: string;
  /** `opened` is the first one of a gate, `closed` the last. */
  readonly event: 'opened' | 'succeeded' | 'failed' | 'closed';
  /** How long it took, in ms; absent when a gate opens or closes. */
  readonly durationMs?: number;
  /** Why it failed. May contain text of the other side. */
  readonly error?: unknown;
  /** How late each change came that a read has brought, in ms. */
  readonly lateMs?: readonly number[];
  /** Returns the state at the time of the call. It is the same function in all messages of one gate about one issuer. */
  readonly status: () => Status;
}

/** The status that each channel's messages have. */
interface Statuses {
  readonly keys: KeyStatus;
  readonly generations: GenerationStatus;
  readonly introspection: IntrospectionStatus;
}

const CHANNELS = { keys: keysChannel, generations: generationsChannel, introspection: introspectionChannel };

/** Publishes what one gate does for one issuer. */
export class ActivityPublisher<Name extends keyof Statuses> {
  readonly #channel: (typeof CHANNELS)[Name];
  readonly #always: Pick<Activity<Statuses[Name]>, 'issuer' | 'status'>;
  #isClosed = false;

  constructor(name: Name, issuer: string, status: () => Statuses[Name]) {
    this.#channel = CHANNELS[name];
    this.#always = { issuer, status };
  }

  publish(event: Activity<unknown>['event'], more?: Pick<Activity<unknown>, 'durationMs' | 'error' | 'lateMs'>): void {
    // What closing aborts fails later.
    if (this.#isClosed || !this.#channel.hasSubscribers) return;
    this.#isClosed = event === 'closed';
    this.#channel.publish({ ...this.#always, event, ...more });
  }

  /**
   * Does `work`, and publishes how it ended.
   *
   * @param lateMs - how late the changes came that it has brought
   */
  async during<Value>(work: () => Promise<Value>, lateMs?: (value: Value) => readonly number[]): Promise<Value> {
    if (!this.#channel.hasSubscribers) return work();
    const startedMs = performance.now();
    const durationMs = (): number => performance.now() - startedMs;
    try {
      const value = await work();
      this.publish('succeeded', { durationMs: durationMs(), ...(lateMs && { lateMs: lateMs(value) }) });
      return value;
    } catch (error) {
      this.publish('failed', { durationMs: durationMs(), error });
      throw error;
    }
  }
}
