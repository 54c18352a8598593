import { authenticateClient } from './client-authentication';
import type { Form } from './form';
import { oauthEndpoint } from './oauth-endpoint';
import type { OAuthHandler, RequestLimit } from './oauth-endpoint';
import { OAuthError } from './oauth-error';
import { parseScope } from './scope';
import type { ClientRow, State } from './state';
import type { Tokens } from './tokens';

/** What the token endpoint works on. */
export interface TokenEndpointOptions {
  readonly state: () => State;
  readonly tokens: Tokens;
  readonly limit: RequestLimit | undefined;
}

/** Makes `POST /connect/token`: the client credentials grant (RFC 6749 section 4.4). */
export function tokenEndpoint({ state, tokens, limit }: TokenEndpointOptions): OAuthHandler {
  return oauthEndpoint(limit, function grantToken({ form, credentials }) {
    requireClientCredentialsGrant(form);
    // One row from here on: the token says the generation that the secret was checked against.
    const client = authenticateClient(state(), credentials);
    return tokens.issue(client, grantScopes(form, client));
  });
}

/** @throws OAuthError `invalid_request` or `unsupported_grant_type` (RFC 6749 section 5.2) */
function requireClientCredentialsGrant(form: Form): void {
  const grantType = form.get('grant_type');
  if (grantType === 'client_credentials') return;
  if (grantType === undefined) {
    throw new OAuthError('invalid_request', 'grant_type is missing: send grant_type=client_credentials.');
  }
  throw new OAuthError('unsupported_grant_type', 'The only grant type here is client_credentials.');
}

/**
 * The requested scopes, all of them or none: RFC 6749 section 3.3 leaves partial grants to the server.
 *
 * @throws OAuthError `invalid_scope`
 */
function grantScopes(form: Form, client: ClientRow): readonly string[] {
  const requested = form.get('scope');
  if (requested === undefined) {
    throw new OAuthError('invalid_scope', `scope is missing: ask for one or more of ${registeredScopes(client)}.`);
  }
  const scopes = parseScope(requested);
  if (!scopes) throw new OAuthError('invalid_scope', 'scope must be scope names separated by single spaces.');
  if (scopes.every((scope) => client.scopes.includes(scope))) return scopes;
  throw new OAuthError(
    'invalid_scope',
    `The client is not registered with one of the scopes: it has ${registeredScopes(client)}.`,
  );
}

/** The grammar of scopes (section 3.3) fits into that of descriptions (section 5.2). */
function registeredScopes({ scopes }: ClientRow): string {
  return scopes.join(' ');
}
