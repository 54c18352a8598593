import type { MovedFloor, MovedFloors } from './floor-log';

/** What a feed can serve at one moment. */
export interface FeedView {
  /** Becomes the entity tag: another one after each move. */
  readonly revision: string;
  /** Time to ask from next: every later move has this time or a later one. */
  readonly nowMs: number;
  /** Every later move has this time or a later one, and no earlier move has. */
  readonly nextMs: number;
  /** Lower floors that are times may be missing; 0 if none is. */
  readonly completeFromMs: number;
  /** Age of the floors in ms, for feeds that follow another source. */
  readonly ageMs: number | undefined;
  /** The floors that moved at or after a time. */
  movedSince(ms: number, inOrder?: boolean): MovedFloors | Promise<MovedFloors>;
}

/** Floors that are served to other processes. */
export interface Feed {
  readonly closed: boolean;
  /** Names of the relays that the floors came through, this one last (RFC 9110 section 7.6.3). */
  readonly via: readonly string[];
  readonly retryAfterSeconds: number;
  /** How often it could serve again after it could not. */
  readonly interruptions: number;
  /** `undefined` while no response could be complete. */
  view(): FeedView | undefined;
  /** Calls `listener` after each move, when a view is available again, and at the end. */
  subscribe(listener: () => void): () => void;
}

/** The JSON of one floor, in half the time that it takes as an object. */
export function toEntry({ clientId, generation }: Pick<MovedFloor, 'clientId' | 'generation'>): string {
  return `{"client_id":${JSON.stringify(clientId)},"generation":${generation}}`;
}
