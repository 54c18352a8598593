import { authenticateClient } from './client-authentication';
import { oauthEndpoint } from './oauth-endpoint';
import type { OAuthHandler } from './oauth-endpoint';
import { OAuthError } from './oauth-error';
import type { State } from './state';
import type { Tokens } from './tokens';

/** What the introspection endpoint works on. */
export interface IntrospectionOptions {
  readonly state: () => State;
  readonly tokens: Tokens;
}

/**
 * Makes `POST /connect/introspect` (RFC 7662), for every registered client. A token that is not good at this moment, for
 * whatever reason, is answered by `active: false` alone (section 2.2).
 */
export function introspectionEndpoint({ state, tokens }: IntrospectionOptions): OAuthHandler {
  return oauthEndpoint(undefined, function introspect({ form, credentials }) {
    authenticateClient(state(), credentials);
    const token = form.get('token');
    if (token === undefined) throw new OAuthError('invalid_request', 'token is missing: send the token to look at.');
    const claims = tokens.read(token);
    if (!claims) return { active: false };
    return { active: true, token_type: 'Bearer', ...claims };
  });
}
