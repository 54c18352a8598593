import { AuthError } from '../core/errors';
import type { Timer } from '../core/clock';
import type { Reason } from '../core/reasons';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import type { GateVerifier } from './verifier';

/** Why something that was held has to end: why a request would be refused, or that the gate was closed. */
export type HoldEnd = Reason | 'gate_closed';

/** Something that stays open longer than a request, with the caller that it was opened for. */
interface Held {
  readonly auth: Auth;
  readonly end: (reason: HoldEnd) => void;
}

/** All of them are looked at once in this time, a part at each tick. */
const ROUND_MS = 1_000;
const TICK_MS = 100;

/**
 * Ends what stays open longer than a request when a request with the same token would be refused. A floor that has risen
 * is looked at immediately, everything else within a second: the times of the token, its key, and whether keys and
 * generations are known at all.
 */
export class HeldCallers {
  readonly #verifier: Pick<GateVerifier, 'recheck' | 'onFloor'>;
  readonly #settings: Pick<GateSettings, 'schedule' | 'logger'>;
  /** By issuer and client, because a floor is that of a client. */
  readonly #clients = new Map<string, Set<Held>>();
  /** Clients that the next tick looks at, before its part of the round. */
  readonly #due = new Set<string>();
  #count = 0;
  #round: Iterator<Set<Held>> | undefined;
  /** Clients that a tick of this round looks at. */
  #perTick = 0;
  #timer: Timer | undefined;
  #soon: Timer | undefined;
  #watches = false;
  #closed = false;

  constructor(
    verifier: Pick<GateVerifier, 'recheck' | 'onFloor'>,
    settings: Pick<GateSettings, 'schedule' | 'logger'>,
  ) {
    this.#verifier = verifier;
    this.#settings = settings;
  }

  /**
   * Calls `end` once, when a request with the token of this caller would be refused.
   *
   * @returns lets go of it; `end` is not called afterwards
   * @throws TypeError when this gate has not accepted the caller
   */
  hold(auth: Auth, end: Held['end']): () => void {
    if (typeof end !== 'function') throw new TypeError('hold(): expected a function to call at the end');
    try {
      this.#verifier.recheck(auth);
    } catch (error) {
      // Between the request and now: it ends as any other one does, not before this returns.
      if (!(error instanceof AuthError)) throw error;
    }
    const client = clientOf(auth.issuer, auth.clientId);
    const held: Held = { auth, end };
    const ofClient = this.#clients.get(client) ?? new Set();
    this.#clients.set(client, ofClient.add(held));
    this.#count++;
    if (this.#closed) this.#settings.schedule(() => this.#end(client, held, 'gate_closed'), 0);
    else {
      this.#watch();
      this.#lookAt(client);
    }
    return () => void this.#release(client, held);
  }

  /** Number of what is held. */
  get size(): number {
    return this.#count;
  }

  /** Ends everything: nothing could end it later. */
  close(): void {
    this.#closed = true;
    for (const [client, ofClient] of this.#clients) {
      for (const held of ofClient) this.#end(client, held, 'gate_closed');
    }
    this.#timer?.cancel();
    this.#soon?.cancel();
  }

  #watch(): void {
    this.#timer ??= this.#settings.schedule(() => this.#tick(), TICK_MS);
    if (this.#watches) return;
    this.#watches = true;
    this.#verifier.onFloor((issuer, clientId) => this.#lookAt(clientOf(issuer, clientId)));
  }

  /** Looks at a client in the next turn: a floor may rise while a request of it is decided. */
  #lookAt(client: string): void {
    if (!this.#clients.has(client)) return;
    this.#due.add(client);
    this.#soon ??= this.#settings.schedule(() => {
      this.#soon = undefined;
      for (const due of this.#due) this.#check(due);
      this.#due.clear();
    }, 0);
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#count === 0) return;
    if (!this.#round) {
      this.#round = this.#clients.values();
      // One more, because the end of a round takes a step too.
      this.#perTick = Math.ceil((this.#clients.size * TICK_MS) / ROUND_MS) + 1;
    }
    let left = this.#perTick;
    for (; left > 0; left--) {
      const { value: ofClient, done } = this.#round.next() as IteratorResult<Set<Held>, undefined>;
      if (done) {
        this.#round = undefined;
        break;
      }
      const [first] = ofClient;
      if (first) this.#check(clientOf(first.auth.issuer, first.auth.clientId));
    }
    if (this.#count > 0) this.#watch();
  }

  #check(client: string): void {
    for (const held of this.#clients.get(client) ?? []) {
      try {
        this.#verifier.recheck(held.auth);
      } catch (error) {
        if (error instanceof AuthError) this.#end(client, held, error.reason);
        else throw error;
      }
    }
  }

  #end(client: string, held: Held, reason: HoldEnd): void {
    if (!this.#release(client, held)) return;
    try {
      held.end(reason);
    } catch (error) {
      const { issuer, clientId } = held.auth;
      this.#settings.logger.error({ issuer, clientId, error: String(error) }, 'the function given to hold() threw');
    }
  }

  #release(client: string, held: Held): boolean {
    const ofClient = this.#clients.get(client);
    if (!ofClient?.delete(held)) return false;
    this.#count--;
    if (ofClient.size === 0) this.#clients.delete(client);
    return true;
  }
}

/** No issuer has a blank in it. */
function clientOf(issuer: string, clientId: string): string {
  return `${issuer} ${clientId}`;
}
