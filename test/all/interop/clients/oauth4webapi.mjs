import * as oauth from 'oauth4webapi';

/** Both servers of the tests are on loopback. */
const overHttp = { [oauth.allowInsecureRequests]: true };

/** Gets a token by the client credentials grant, from an authorization server that it discovers. */
export async function token({ issuer, discovery, clientId, secret, method, parameters }) {
  const server = await discover({ issuer, discovery });
  const client = { client_id: clientId };
  const authentication = method === 'basic' ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret);
  const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, parameters, overHttp);
  const { access_token, token_type, expires_in, scope } = await oauth.processClientCredentialsResponse(
    server,
    client,
    response,
  );
  return { access_token, token_type, expires_in, scope };
}

/** Calls an API with a token. */
export async function call({ url, accessToken }) {
  const noBody = [undefined, undefined];
  const response = await oauth.protectedResourceRequest(accessToken, 'GET', new URL(url), ...noBody, overHttp);
  return response.status;
}

/** Verifies a token as an API guarded by this library would (RFC 9068 section 4), and returns its claims. */
export async function validate({ issuer, audience, accessToken }) {
  const server = await discover({ issuer });
  const request = new Request(audience, { headers: { authorization: `Bearer ${accessToken}` } });
  return oauth.validateJwtAccessToken(server, request, audience, overHttp);
}

/** Finds out who an API trusts (RFC 9728). */
export async function resource({ url }) {
  const response = await oauth.resourceDiscoveryRequest(new URL(url), overHttp);
  return oauth.processResourceDiscoveryResponse(new URL(url), response);
}

/** Fetches the metadata of an authorization server and checks it: `oidc` (OpenID Connect) or `oauth2` (RFC 8414). */
export async function discover({ issuer, discovery = 'oidc' }) {
  const url = new URL(issuer);
  const response = await oauth.discoveryRequest(url, { ...overHttp, algorithm: discovery });
  return oauth.processDiscoveryResponse(url, response);
}
