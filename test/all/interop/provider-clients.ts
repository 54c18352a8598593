import { API } from './guarded-api';
import type { Method, TokenRequest } from './oauth-clients';
import { startOidcProvider } from './oidc-provider';
import type { OidcProvider } from './oidc-provider';

/** Another API that trusts the same authorization server. */
export const OTHER_API = 'https://other.test';
/** One whose tokens are opaque. */
export const OPAQUE_API = 'https://opaque.test';
/** A secret that comes apart wherever somebody forgets to encode or to decode it. */
export const SECRET = 'p+s %25:"&=secret';
const SCOPE = 'orders:read orders:write orders:cancel';

/** oidc-provider with one client for each way of authentication. */
export function startProviderWithClients(): Promise<OidcProvider> {
  return startOidcProvider({
    audiences: [API, OTHER_API, OPAQUE_API],
    opaque: [OPAQUE_API],
    clients: [
      client(clientId('basic'), 'client_secret_basic'),
      client(clientId('body'), 'client_secret_post'),
      client('unstamped', 'client_secret_basic'),
    ],
  });
}

export function clientId(method: Method): string {
  return `pos-${method}`;
}

/** The token request of a client, for orders:read unless told otherwise. */
export function tokenRequest(
  { issuer, tokenEndpoint }: OidcProvider,
  method: Method,
  { id = clientId(method), ...parameters }: { id?: string; scope?: string; resource?: string } = {},
): TokenRequest {
  const asked = { scope: 'orders:read', ...parameters };
  return { issuer, tokenEndpoint, clientId: id, secret: SECRET, method, parameters: asked };
}

function client(id: string, authentication: 'client_secret_basic' | 'client_secret_post') {
  return { client_id: id, client_secret: SECRET, scope: SCOPE, token_endpoint_auth_method: authentication };
}
