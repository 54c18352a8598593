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

/** What the process of a token server reports: its URL when it listens. */
export interface FromTokenServer {
  readonly base: string;
}

/** What a process that starts has measured. */
export interface ColdStartFigures {
  readonly readSeconds: number;
  readonly cpuSeconds: number;
  readonly blockMs: number;
  readonly megabytes: number;
}

/** Name of the channel of bare messages. */
export const BARE = 'bare';

/** The same clock in every process of one machine. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}
