import type { ServerResponse } from 'node:http';
import type { Logger } from '../core/logger';
import type { Auth } from './auth';
import type { GateRequest, Next } from './http';

/** What happens to a 2xx response that no guard allowed. */
export type Unguarded = 'allow' | 'warn' | 'refuse';

/** What guards need to know about the gate before them. */
export interface RequestGate {
  readonly logger: Logger;
  readonly unguarded: Unguarded;
  readonly problemTypes: string | undefined;
  /** Refuses as the gate does: its presentation, its log, its `onDecision`. */
  readonly refuse: (req: GateRequest, res: ServerResponse, error: unknown, next: Next) => void;
}

/** The methods that send a response. */
export type Writers = Pick<ServerResponse, 'writeHead' | 'write' | 'end'>;

/** State of a request that a gate has accepted. Guards trust this, not `req.auth`, which any middleware can assign. */
export interface RequestState {
  readonly gate: RequestGate;
  /** `undefined` for a request without a token that an optional gate accepted. */
  readonly auth: Auth | undefined;
  /** Whether a guard has allowed the request. */
  allowed: boolean;
  /** The strictest setting of all gates before this point. */
  unguarded: Unguarded;
  /** The response's methods before `enforceGuards` replaced them; `undefined` where it did not. */
  writers: Writers | undefined;
  /** Whether a 500 has replaced the response because no guard had allowed it. */
  replaced: boolean;
}

/**
 * A WeakMap cannot be forged, and it leaves the hidden class of Express's request as it is: V8 copies that class for
 * each member added.
 */
const states = new WeakMap<GateRequest, RequestState>();

/** Starts the state of a request that a gate accepted. A second gate starts anew: a guard of the first one does not count. */
export function openState(req: GateRequest, gate: RequestGate, auth: Auth | undefined): RequestState {
  const { unguarded } = gate;
  const state = { gate, auth, allowed: false, unguarded, writers: undefined, replaced: false };
  states.set(req, state);
  return state;
}

/** The state of a request, or `undefined` when no gate has accepted it. */
export function stateOf(req: GateRequest): RequestState | undefined {
  return states.get(req);
}
