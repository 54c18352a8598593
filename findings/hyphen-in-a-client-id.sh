#!/usr/bin/env bash
# Packages:  oauth4webapi 3.8.8, simple-oauth2 5.1.0, @node-oauth/oauth2-server 5.3.0 (npm)
# Behaviour: for HTTP Basic, RFC 6749 section 2.3.1 has the client id form-encoded first. oauth4webapi (and openid-client 6 on top of it)
#            encodes `-`, `_` and `.` too, which a form serializer leaves as they are. The server does not decode at all, so it looks for
#            a client `till%2D1`.
# Seen:      oauth4webapi: client "till%2D1", secret "s%5Fcret", refused; simple-oauth2: "till-1", "s_cret", a token; a client without
#            such characters gets a token from both.
# Surprise:  nothing in `till-1`, or in any UUID, seems to need encoding, and a test with the client `till` passes. A client that
#            encodes more than it has to meets a server that decodes nothing, and the caller reads that its secret is wrong.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund oauth4webapi@3.8.8 simple-oauth2@5.1.0 @node-oauth/oauth2-server@5.3.0
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { createServer } from 'node:http';
import OAuth2Server from '@node-oauth/oauth2-server';
import * as oauth from 'oauth4webapi';
import { ClientCredentials } from 'simple-oauth2';

const secrets = { 'till-1': 's_cret', till: 'secret' };
let asked;
const model = {
  getClient(id, secret) {
    asked = [id, secret];
    return secrets[id] === secret ? { id, grants: ['client_credentials'] } : null;
  },
  getUserFromClient: () => ({ id: 1 }),
  saveToken: (token, client, user) => ({ ...token, client, user }),
};
const tokens = new OAuth2Server({ model });
const server = createServer(async (req, res) => {
  let text = '';
  for await (const chunk of req) text += chunk;
  const { method, headers } = req;
  const body = Object.fromEntries(new URLSearchParams(text));
  const request = new OAuth2Server.Request({ method, headers, query: {}, body });
  const response = new OAuth2Server.Response({});
  await tokens.token(request, response).catch(() => undefined);
  res.writeHead(response.status ?? 200, { ...response.headers, 'Content-Type': 'application/json' });
  res.end(JSON.stringify(response.body));
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

async function ask(id) {
  const authentication = oauth.ClientSecretBasic(secrets[id]);
  const metadata = { issuer, token_endpoint: `${issuer}/token` };
  const options = { [oauth.allowInsecureRequests]: true };
  const sent = await oauth.clientCredentialsGrantRequest(metadata, { client_id: id }, authentication, {}, options);
  const first = { status: sent.status, asked };
  const simple = new ClientCredentials({ client: { id, secret: secrets[id] }, auth: { tokenHost: issuer, tokenPath: '/token' } });
  const { token } = await simple.getToken({});
  return [first, { token: typeof token.access_token, asked }];
}

try {
  const plain = await ask('till');
  const hyphen = await ask('till-1');
  console.log(plain, hyphen);
  assert.equal(plain[0].status, 200);
  assert.deepEqual(hyphen[0], { status: 401, asked: ['till%2D1', 's%5Fcret'] });
  assert.deepEqual(hyphen[1], { token: 'string', asked: ['till-1', 's_cret'] });
  assert.equal(new URLSearchParams({ id: '-_.' }).toString(), 'id=-_.');
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
