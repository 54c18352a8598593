import type { Auth } from '../verifier/options';
import type { GateSettings } from '../verifier/read-options';
import type { Decide } from './decision';
import type { DecisionRecorder } from './recorder';
import type { GateRequest, RequestState } from './request-state';

/** What a gate lets its trial use. */
export interface TriableGate {
  readonly gate: RequestState['gate'];
  readonly settings: GateSettings;
  readonly decide: Decide;
  readonly advisor: DecisionRecorder['advisor'];
  /** Writes what its trials, and those of guards after it, have counted. Absent before the first difference. */
  writeCounts?: () => void;
  isClosed?: boolean;
}

/**
 * Checks the caller of a request that a gate has accepted.
 *
 * @returns the refusal, `undefined` to allow the request, or another Error where the check has failed
 */
export type GuardCheck = (
  auth: Auth,
  req: GateRequest,
  gate: RequestState['gate'],
) => Error | undefined | Promise<Error | undefined>;

/** By their middlewares, and by what they leave at a request. */
export const triableGates = new WeakMap<object, TriableGate>();
/** By their middlewares. */
export const guardChecks = new WeakMap<object, GuardCheck>();

/**
 * Lets `reportOnly()` try a gate out, and guards after it.
 *
 * @returns what writes the lines that are pending, when the gate is closed
 */
export function letTryGate(middleware: object, gate: TriableGate): { close(): void } {
  triableGates.set(middleware, gate).set(gate.gate, gate);
  return { close: () => ((gate.isClosed = true), gate.writeCounts?.()) };
}

/** The member that marks a trial, also one of another copy of this package. */
export const TRIAL: unique symbol = Symbol.for('tillgate.trial');

/** Whether a middleware is on trial: it decides nothing. */
export function isTrial(middleware: object): boolean {
  return Object.hasOwn(middleware, TRIAL);
}
