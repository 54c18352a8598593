import { createRequire } from 'node:module';

/** The one version of all rooms. */
export const { version: VERSION } = createRequire(__filename)('tillgate/package.json') as { readonly version: string };
