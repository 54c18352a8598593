import type { AuthError } from '../core/errors';

/** The caller of a request, as far as it decides when its turn is. */
export interface Caller {
  /** Callers of one address, or of one IPv6 network, share their turns. */
  readonly address?: string | undefined;
  /** Destroyed when the client disconnects: nothing is computed for it any more. */
  readonly socket?: { readonly destroyed?: boolean } | undefined;
}

/** Where work waits if it has to. */
interface Place {
  /** Work of one share takes turns with that of others. */
  readonly share: string;
  /** Goes before the work that does not. */
  readonly isFirst: boolean;
  /** Part of the limits that the work takes up. */
  readonly cost: number;
  /** Called if the work has to wait; `leave` gives up its place, and does nothing once the work has started. */
  readonly whenWaiting?: (leave: () => void) => void;
}

interface Waiting extends Pick<Place, 'share' | 'cost'> {
  readonly start: () => void;
  readonly turnAway: () => void;
}

/** Runs work within a limit. What exceeds it waits, and each share has the same part of the turns. */
export class FairQueue {
  readonly #limit: number;
  readonly #refusal: () => AuthError;
  /** Those that go first, and the others. */
  readonly #lines: readonly [Line, Line];
  #running = 0;

  /**
   * @param limits - in the unit of the costs: what runs at the same time (work that costs more runs alone), and what waits
   *   at most, of the work that goes first and of the other
   * @param refusal - of work that is turned away, or that has left
   */
  constructor(
    limits: { readonly running: number; readonly waitingFirst: number; readonly waiting: number },
    refusal: () => AuthError,
  ) {
    this.#limit = limits.running;
    this.#refusal = refusal;
    this.#lines = [new Line(limits.waitingFirst), new Line(limits.waiting)];
  }

  /** Runs work when it is its turn. Rejects when too much work waits, or this has left. */
  async run<Value>(place: Place, work: () => Promise<Value>): Promise<Value> {
    if (!this.#next && this.#hasRoomFor(place)) this.#running += place.cost;
    else await this.#turn(place);
    try {
      return await work();
    } finally {
      this.#running -= place.cost;
      this.#startNext();
    }
  }

  /** The line with the work whose turn is next. */
  get #next(): Line | undefined {
    return this.#lines.find((line) => line.next);
  }

  #hasRoomFor({ cost }: Pick<Place, 'cost'>): boolean {
    return this.#running === 0 || this.#running + cost <= this.#limit;
  }

  #turn({ share, cost, isFirst, whenWaiting }: Place): Promise<void> {
    const line = this.#lines[isFirst ? 0 : 1];
    return new Promise((resolve, reject) => {
      const turnAway = (): void => reject(this.#refusal());
      const waiting = { share, cost, start: resolve, turnAway };
      if (!line.add(waiting)) return turnAway();
      whenWaiting?.(() => {
        if (line.remove(waiting)) reject(this.#refusal());
      });
    });
  }

  #startNext(): void {
    for (let line = this.#next; line?.next && this.#hasRoomFor(line.next); line = this.#next) {
      const waiting = line.take();
      this.#running += waiting.cost;
      waiting.start();
    }
  }
}

/** Work that waits, by share; the share whose turn is next comes first. None is empty. */
class Line {
  readonly #shares = new Map<string, Waiting[]>();
  readonly #limit: number;
  #cost = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whose turn is next. */
  get next(): Waiting | undefined {
    for (const [waiting] of this.#shares.values()) return waiting;
    return undefined;
  }

  /** Removes the next one; the turn after it is that of the next share. */
  take(): Waiting {
    const next = this.next as Waiting;
    const ofShare = this.#shares.get(next.share) as Waiting[];
    this.#shares.delete(next.share);
    ofShare.shift();
    this.#cost -= next.cost;
    if (ofShare.length > 0) this.#shares.set(next.share, ofShare);
    return next;
  }

  /** `false`: there is no room, and no share is larger than the one of the newcomer. */
  add(waiting: Waiting): boolean {
    const { share, cost } = waiting;
    while (this.#cost + cost > this.#limit) {
      const largest = this.#largest();
      const last = largest?.at(-1);
      if (!largest || !last || largest.length <= (this.#shares.get(share)?.length ?? 0)) return false;
      this.remove(last);
      last.turnAway();
    }
    const ofShare = this.#shares.get(share);
    if (ofShare) ofShare.push(waiting);
    else this.#shares.set(share, [waiting]);
    this.#cost += cost;
    return true;
  }

  #largest(): readonly Waiting[] | undefined {
    let largest: readonly Waiting[] | undefined;
    for (const ofShare of this.#shares.values()) if (ofShare.length > (largest?.length ?? 0)) largest = ofShare;
    return largest;
  }

  /** Whether it was still waiting. */
  remove(waiting: Waiting): boolean {
    const ofShare = this.#shares.get(waiting.share);
    const at = ofShare?.lastIndexOf(waiting) ?? -1;
    if (!ofShare || at < 0) return false;
    ofShare.splice(at, 1);
    this.#cost -= waiting.cost;
    if (ofShare.length === 0) this.#shares.delete(waiting.share);
    return true;
  }
}

/** An IPv6 address without its last 64 bits, which one host can choose (RFC 4291 section 2.5.4); any other one as it is. */
export function networkOf(address: string): string {
  const [start = '', end] = address.replace(/^::ffff:(?=\d+\.)/i, '').split('::');
  const groups = start.split(':');
  if (groups.length < 2 && end === undefined) return start;
  return [...groups, '0', '0', '0'].slice(0, 4).join(':');
}
