import { authorizationHeader } from './authorization-header';
import type { OpenTarget } from './campaign';
import { discoveryDocuments, keySets } from './documents';
import { tokenEndpoint } from './token-endpoint';
import { tokens } from './tokens';

/** Everything that is fuzzed, by the name that the command line takes. */
export const TARGETS: Readonly<Record<string, OpenTarget>> = {
  header: authorizationHeader,
  token: tokens,
  jwks: keySets,
  discovery: discoveryDocuments,
  'token-endpoint': tokenEndpoint,
};
