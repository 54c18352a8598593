import * as client from 'openid-client';
import { replyToParent } from '../../setup/reply-to-parent.mjs';

// openid-client with a key of its own: gets DPoP-bound tokens, and calls an API with them.
let handle;
let server;

replyToParent({}, async ({ discover, token, call }) => {
  if (discover) {
    const { issuer, clientId, secret } = discover;
    server = await client.discovery(new URL(issuer), clientId, {}, client.ClientSecretBasic(secret), {
      execute: [client.allowInsecureRequests],
    });
    handle = client.getDPoPHandle(server, await client.randomDPoPKeyPair('ES256'));
    return {};
  }
  if (token) {
    const { access_token, token_type } = await client.clientCredentialsGrant(server, token, { DPoP: handle });
    return { access_token, token_type };
  }
  const { url, accessToken, method = 'GET' } = call;
  return await fetchStatus(() =>
    client.fetchProtectedResource(server, accessToken, new URL(url), method, undefined, undefined, { DPoP: handle }),
  );
});

async function fetchStatus(send) {
  try {
    return { status: (await send()).status };
  } catch (error) {
    const [challenge] = error.cause instanceof Array ? error.cause : [];
    return { status: error.response?.status ?? error.status, error: challenge?.parameters?.error };
  }
}
