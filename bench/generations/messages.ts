/** What the coordinator and the resource servers tell each other; times are ms since the epoch with fractions. */
export type ToServer = { readonly kind: 'watch'; readonly round: number; readonly token: string };

export type FromServer =
  | { readonly kind: 'ready' }
  /** The token is accepted: the round can begin. */
  | { readonly kind: 'accepted'; readonly round: number }
  /** The token is refused as superseded. */
  | { readonly kind: 'refused'; readonly round: number; readonly at: number }
  | { readonly kind: 'failed'; readonly message: string };

/** The same clock in every process of one machine. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}
