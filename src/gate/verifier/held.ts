import { callUnwaited } from '../core/callbacks';
import { AuthError } from '../core/errors';
import type { Timer } from '../core/clock';
import { errorText } from '../core/logger';
import type { Reason } from '../core/reasons';
import { subjectCaller } from '../core/subject-caller';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import type { GateVerifier } from './gate-verifier';

/** Why something that was held has to end: why a request would be refused, or that the gate was closed. */
type HoldEnd = Reason | 'gate_closed';

/** Something that stays open longer than a request, with the caller that it was opened for. */
interface Held {
  readonly auth: Auth;
  readonly end: (reason: HoldEnd) => unknown;
  readonly isClosed: (() => boolean) | undefined;
  /** Those that are checked at the same tick. */
  readonly part: Set<Held>;
}

/** Each part is checked once a second, and one part at a time. */
const PARTS = 10;
const TICK_MS = 100;

/**
 * Ends what stays open longer than a request when a request with the same token would be refused. A floor that has risen
 * is checked immediately, everything else within a second: the times of the token, its key, and whether keys and
 * generations are known at all.
 */
export class HeldCallers {
  readonly #verifier: Pick<GateVerifier, 'recheck' | 'onFloor'>;
  readonly #settings: Pick<GateSettings, 'schedule' | 'logger'>;
  /** By issuer and client, because a floor is that of a client. */
  readonly #clients = new Map<string, Set<Held>>();
  /** Clients whose floor has risen since the last turn. */
  readonly #due = new Set<string>();
  readonly #parts = Array.from({ length: PARTS }, () => new Set<Held>());
  /** How many were ever given, and how many ticks have passed: which part is next. */
  #added = 0;
  #ticks = 0;
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
    const held: Held = { auth, end, isClosed, part: this.#parts[this.#added++ % PARTS] as Set<Held> };
    const reason = this.#closed ? 'gate_closed' : refusal;
    if (reason) {
      // The token has been refused since the request: `end` is called like any other, not before this returns.
      const timer = this.#settings.schedule(() => this.#call(held, reason), 0);
      return () => timer.cancel();
    }
    const client = clientOf(auth);
    const ofClient = this.#clients.get(client) ?? new Set();
    this.#clients.set(client, ofClient.add(held));
    held.part.add(held);
    this.#watch();
    return () => void this.#release(held);
  }

  /** Ends everything: nothing could end it later. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#soon?.cancel();
    for (const part of this.#parts) for (const held of part) this.#end(held, 'gate_closed');
  }

  #watch(): void {
    if (!this.#closed) this.#timer ??= this.#settings.schedule(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    this.#timer = undefined;
    for (const held of this.#parts[this.#ticks++ % PARTS] ?? []) this.#check(held);
    if (this.#clients.size > 0) this.#watch();
  }

  #onFloor(issuer: string, clientId: string): void {
    if (this.#clients.size === 0) return;
    // The floor of `x` counts for a caller `sub:x` too.
    const ids = [clientId, subjectCaller(clientId)].map((id) => clientOf({ issuer, clientId: id }));
    const held = ids.filter((client) => this.#clients.has(client));
    if (held.length === 0) return;
    for (const client of held) this.#due.add(client);
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
    callUnwaited(
      () => end(reason),
      (error) => logger.error({ issuer, clientId, error: errorText(error) }, message),
    );
  }

  #release(held: Held): boolean {
    const client = clientOf(held.auth);
    const ofClient = this.#clients.get(client);
    if (!ofClient?.delete(held)) return false;
    held.part.delete(held);
    if (ofClient.size === 0) this.#clients.delete(client);
    return true;
  }
}

/** No issuer has a blank in it. */
function clientOf({ issuer, clientId }: Pick<Auth, 'issuer' | 'clientId'>): string {
  return `${issuer} ${clientId}`;
}
