/** What the coordinator and the resource servers tell each other; times are ms since the epoch with fractions. */
export type ToServer = { readonly kind: 'watch'; readonly round: number; readonly token: string };

export type FromServer =
  | { readonly kind: 'ready' }
  /** The token is accepted: the round can begin. */
  | { readonly kind: 'accepted'; readonly round: number }
  /** The token is refused as superseded. */
  | { readonly kind: 'refused'; readonly round: number; readonly at: number }
  /** The bare message of the round has arrived. */
  | { readonly kind: 'bare'; readonly round: number; readonly at: number }
  | { readonly kind: 'failed'; readonly message: string };

/** What a feed's process reports: its URL when it listens, and on request what it has done so far. */
export interface FromFeed {
  readonly base?: string;
  readonly requests?: number;
  readonly connections?: number;
  readonly bytes?: number;
}

/** The coordinator tells a process of many readers which change to wait for, and gets the time of the last that refused. */
export type ToReaders = { readonly round: number; readonly clientId: string; readonly generation: number };
export type FromReaders = { readonly ready: true } | { readonly round: number; readonly at: number };

/** What a process that starts has measured. */
export interface ColdStartFigures {
  readonly readSeconds: number;
  readonly cpuSeconds: number;
  readonly blockMs: number;
  readonly megabytes: number;
  readonly rss: number;
  readonly lookupNs: number;
}

/** Which changes it is to wait for, and what it tells: its figures, and the time at which every old token is refused. */
export type ToColdStart = { readonly clientIds: readonly string[]; readonly generation: number };
export type FromColdStart = { readonly figures: ColdStartFigures } | { readonly refusedAt: number };

/** Name of the channel of bare messages. */
export const BARE = 'bare';

/** The same clock in every process of one machine. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}
