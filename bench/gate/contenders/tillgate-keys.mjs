import { mount as mountFetching } from './tillgate-fetched.mjs';

/** The gate with a key set that need not be fetched: for the start alone. */
export function mount(app, { jwks, jwksUri: _, ...context }) {
  return mountFetching(app, { ...context, keys: jwks });
}
