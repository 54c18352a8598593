import { notify } from '../core/callbacks';
import { AuthError } from '../core/errors';
import type { Timer } from '../core/clock';
import { errorText } from '../core/logger';
import type { Reason } from '../core/reasons';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import type { GateVerifier } from './verifier';

/** Why something that was held has to end: why a request would be refused, or that the gate was closed. */
export type HoldEnd = Reason | 'gate_closed';

/** Something that stays open longer than a request, with the caller that it was opened for. */
interface Held {
  readonly auth: Auth;
  readonly end: (reason: HoldEnd) => unknown;
  readonly isClosed: (() => boolean) | undefined;
}

/** Time in which each of them is checked once, some at each tick. */
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
  /** Clients whose floor has risen since the last turn. */
  readonly #due = new Set<string>();
  #size = 0;
  #round: Iterator<Held, undefined> | undefined;
  /** How many a tick of this round looks at. */
  #part = 0;
  #timer: Timer | undefined;
  #soon: Timer | undefined;
  #closed = false;

  constructor(
    verifier: Pick<GateVerifier, 'recheck' | 'onFloor'>,
    settings: Pick<GateSettings, 'schedule' | 'logger'>,
  ) {
    this.#verifier = verifier;
    this.#settings = settings;
    verifier.onFloor((issuer, clientId) => this.#onFloor(issuer, clientId));
  }

  /**
   * Calls `end` once, when a request with the token of this caller would be refused.
   *
   * @param isClosed - whether what is held has closed without a call of the returned function: then it is released
   * @returns releases it; `end` is not called afterwards
   * @throws TypeError when this gate has not accepted the caller
   */
  hold(auth: Auth, end: Held['end'], isClosed?: () => boolean): () => void {
    if (typeof end !== 'function') throw new TypeError('hold(): expected a function to call at the end');
    const refusal = this.#refusalOf(auth);
    const held: Held = { auth, end, isClosed };
    const reason = this.#closed ? 'gate_closed' : refusal;
    if (reason) {
      // The token has been refused since the request: `end` is called like any other, not before this returns.
      const timer = this.#settings.schedule(() => this.#call(held, reason), 0);
      return () => timer.cancel();
    }
    const client = clientOf(auth);
    const ofClient = this.#clients.get(client) ?? new Set();
    this.#clients.set(client, ofClient.add(held));
    this.#size++;
    this.#watch();
    return () => void this.#release(held);
  }

  /** Number of what is held. */
  get size(): number {
    return this.#size;
  }

  /** Ends everything: nothing could end it later. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#soon?.cancel();
    for (const held of this.#all()) this.#end(held, 'gate_closed');
  }

  #watch(): void {
    if (!this.#closed) this.#timer ??= this.#settings.schedule(() => this.#tick(), TICK_MS);
  }

  *#all(): Generator<Held, undefined> {
    for (const ofClient of this.#clients.values()) yield* ofClient;
    return undefined;
  }

  #tick(): void {
    this.#timer = undefined;
    if (!this.#round) [this.#round, this.#part] = [this.#all(), 0];
    // One more, because the end of a round takes a step too. Entries that end during a round do not slow down the rest.
    this.#part = Math.max(this.#part, Math.ceil((this.#size * TICK_MS) / ROUND_MS) + 1);
    for (let left = this.#part; left > 0; left--) {
      const held = this.#round.next().value;
      if (!held) {
        this.#round = undefined;
        break;
      }
      this.#check(held);
    }
    if (this.#size > 0) this.#watch();
    else this.#round = undefined;
  }

  #onFloor(issuer: string, clientId: string): void {
    const client = this.#size > 0 ? clientOf({ issuer, clientId }) : '';
    if (!this.#clients.has(client)) return;
    this.#due.add(client);
    // In the next turn: a floor may rise while a request of the client is decided.
    this.#soon ??= this.#settings.schedule(() => {
      this.#soon = undefined;
      const due = [...this.#due];
      this.#due.clear();
      for (const client of due) for (const held of this.#clients.get(client) ?? []) this.#check(held);
    }, 0);
  }

  #check(held: Held): void {
    if (held.isClosed?.()) return void this.#release(held);
    let reason: HoldEnd | undefined;
    try {
      reason = this.#refusalOf(held.auth);
    } catch (error) {
      // A request would get 500 now: what cannot be decided does not stay open.
      this.#settings.logger.error({ error: errorText(error) }, 'a held caller could not be decided');
      reason = 'keys_unavailable';
    }
    if (reason) this.#end(held, reason);
  }

  /** Why a request with the token of a caller would be refused now. */
  #refusalOf(auth: Auth): Reason | undefined {
    try {
      this.#verifier.recheck(auth);
      return undefined;
    } catch (error) {
      if (error instanceof AuthError) return error.reason;
      throw error;
    }
  }

  #end(held: Held, reason: HoldEnd): void {
    if (this.#release(held)) this.#call(held, reason);
  }

  #call({ auth: { issuer, clientId }, end }: Held, reason: HoldEnd): void {
    const { logger } = this.#settings;
    const message = 'the function given to hold() failed';
    notify(
      () => end(reason),
      (error) => logger.error({ issuer, clientId, error: errorText(error) }, message),
    );
  }

  #release(held: Held): boolean {
    const client = clientOf(held.auth);
    const ofClient = this.#clients.get(client);
    if (!ofClient?.delete(held)) return false;
    this.#size--;
    if (ofClient.size === 0) this.#clients.delete(client);
    return true;
  }
}

/** No issuer has a blank in it. */
function clientOf({ issuer, clientId }: Pick<Auth, 'issuer' | 'clientId'>): string {
  return `${issuer} ${clientId}`;
}
