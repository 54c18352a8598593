import type { ServerResponse } from 'node:http';
import type { AuthError } from '../core/auth-error';
import type { Logger } from '../core/logger';
import type { Auth } from './auth';
import type { GateRequest } from './http';

/** What happens to a 2xx answer that no guard allowed. */
export type Unguarded = 'allow' | 'warn' | 'refuse';

/** What is the same for every request that one gate lets pass. */
export interface PassageGate {
  readonly logger: Logger;
  readonly unguarded: Unguarded;
  /** Refuses as the gate does: its presentation, its log, its `onDecision`. */
  readonly refuse: (req: GateRequest, res: ServerResponse, error: AuthError) => void;
}

/** The methods through which an answer leaves. */
export type Writers = Pick<ServerResponse, 'writeHead' | 'write' | 'end'>;

/** What a gate leaves with a request for the guards behind it. Guards trust this, not `req.auth`, which anybody can set. */
export interface Passage {
  readonly gate: PassageGate;
  /** `undefined`: a request without a token that an optional gate let pass. */
  readonly auth: Auth | undefined;
  /** Whether a guard has allowed the request. */
  allowed: boolean;
  /** As the strictest of the gates asks that the request has passed. */
  unguarded: Unguarded;
  /** The answer's methods from before it was watched; absent where it is not. */
  writers: Writers | undefined;
  /** Whether the answer was taken back because no guard had allowed it. */
  heldBack: boolean;
}

/**
 * Not a member of request or answer: nobody can forge it, and one more member on those objects of Express, whose
 * prototype has been changed, makes V8 copy their whole shape.
 */
const passages = new WeakMap<GateRequest, Passage>();

/** Marks a request as one that passed a gate; a second gate replaces the first one's mark. */
export function openPassage(req: GateRequest, gate: PassageGate, auth: Auth | undefined): Passage {
  const passage: Passage = {
    gate,
    auth,
    allowed: false,
    unguarded: gate.unguarded,
    writers: undefined,
    heldBack: false,
  };
  passages.set(req, passage);
  return passage;
}

/** The passage of a request, or `undefined` when no gate was before. */
export function passageOf(req: GateRequest): Passage | undefined {
  return passages.get(req);
}
