import * as client from 'openid-client';

/** Gets a token by the client credentials grant, from an authorization server that it discovers. */
export async function token({ issuer, discovery, clientId, secret, method, parameters }) {
  const server = await discover({ issuer, discovery, clientId, secret, method });
  const { access_token, token_type, expires_in, scope } = await client.clientCredentialsGrant(server, parameters);
  return { access_token, token_type, expires_in, scope };
}

/** Introspects a token (RFC 7662). */
export async function introspect({ accessToken, ...credentials }) {
  return client.tokenIntrospection(await discover(credentials), accessToken);
}

/** Calls an API with a token. */
export async function call({ url, accessToken, ...credentials }) {
  const server = await discover(credentials);
  const response = await client.fetchProtectedResource(server, accessToken, new URL(url), 'GET');
  return response.status;
}

function discover({ issuer, discovery = 'oidc', clientId, secret, method }) {
  const authentication = method === 'basic' ? client.ClientSecretBasic(secret) : client.ClientSecretPost(secret);
  return client.discovery(new URL(issuer), clientId, {}, authentication, {
    algorithm: discovery,
    // Both servers of the tests are on loopback.
    execute: [client.allowInsecureRequests],
  });
}
