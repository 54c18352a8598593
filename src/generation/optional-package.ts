import { createRequire } from 'node:module';

/** Loads a package by its name. */
export type Load = (name: string) => unknown;

/** Node's `require`. */
export const loadPackage: Load = createRequire(__filename);

/** Loads an optional peer: `undefined` when it is not there; one that is there and broken throws. */
export function loadIfInstalled(load: Load, name: string): unknown {
  try {
    return load(name);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
