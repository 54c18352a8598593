import type { ServerResponse } from 'node:http';
import type { AuthError } from '../core/auth-error';
import type { Logger } from '../core/logger';
import type { Auth } from './auth';
import type { GateRequest } from './http';

/** What a gate leaves with a request for the guards behind it. Guards trust this, not `req.auth`, which anybody can set. */
export interface Passage {
  /** `undefined`: a request without a token that an optional gate let pass. */
  readonly auth: Auth | undefined;
  readonly logger: Logger;
  /** Whether a guard has allowed the request. */
  allowed: boolean;
  /** Refuses as the gate does: its presentation, its log, its `onDecision`. */
  readonly refuse: (req: GateRequest, res: ServerResponse, error: AuthError) => void;
}

const PASSAGE = Symbol('tillgate.passage');

/** Marks a request as having passed a gate; a second gate replaces the first one's mark. */
export function openPassage(req: GateRequest, passage: Passage): void {
  (req as GateRequest & { [PASSAGE]?: Passage })[PASSAGE] = passage;
}

/** The passage of a request, or `undefined` when no gate was before. */
export function passageOf(req: GateRequest): Passage | undefined {
  return (req as GateRequest & { [PASSAGE]?: Passage })[PASSAGE];
}
