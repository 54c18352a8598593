import { possessionVerifier } from '../token/possession/possession';
import type { PossessionVerifier } from '../token/possession/possession';
import { authenticateOptions, readSettings } from '../settings/settings';
import type { AuthenticateOptions } from './options';
import { readGateOptions } from './read-options';
import type { GateSettings } from './read-options';
import { openVerifier } from './verifier';
import type { Verifier } from './verifier';

/** A gate without HTTP. */
interface OpenGate {
  readonly settings: GateSettings;
  readonly verifier: Verifier;
  /** Absent where neither DPoP nor mutual TLS is on. */
  readonly possession: PossessionVerifier | undefined;
}

/** Opens a gate. Without options the `TILLGATE_*` variables are read. */
export function openGate(options?: AuthenticateOptions): OpenGate {
  const settings = readGateOptions(options === undefined ? authenticateOptions(readSettings()) : options);
  const possession = possessionVerifier(settings);
  return { settings, verifier: openVerifier(settings), possession };
}

const gates = new WeakMap<object, OpenGate>();

/** Remembers which gate decides in a middleware. */
export function rememberGate(middleware: object, gate: OpenGate): void {
  gates.set(middleware, gate);
}

/** The gate of a middleware that `authenticate()` made; `undefined` for anything else. */
export function gateOf(middleware: object): OpenGate | undefined {
  return gates.get(middleware);
}
