import type { GateInternals } from '../../src/gate/verifier/read-options';

const NAMES: ReadonlySet<string> = new Set<keyof GateInternals>([
  'pollMs',
  'readTimeoutMs',
  'random',
  'verifiedTokens',
]);

/** Tells the options of `authenticate()` from what only tests set. */
export function splitInternals(given: object): [options: object, internals: Partial<GateInternals>] {
  const pick = (isInternal: boolean): object =>
    Object.fromEntries(Object.entries(given).filter(([name]) => NAMES.has(name) === isInternal));
  return [pick(false), pick(true)];
}
