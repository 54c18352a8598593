#!/usr/bin/env bash
# Packages:  openid-client 6.9.0 (npm)
# Behaviour: a token server refuses a client secret with 401 and {"error":"invalid_client"}. When the response has the `WWW-Authenticate`
#            that RFC 6749 section 5.2 demands after an attempt by HTTP Basic, openid-client throws another error, without `error` and
#            `error_description`, and does not read the body. Without the header both members are there.
# Seen:      with the header WWWAuthenticateChallengeError, error undefined, body unread; without it ResponseBodyError, error
#            "invalid_client", error_description "the secret has expired".
# Surprise:  the server that keeps to the RFC gives its caller less. A handler that asks for `invalid_client`, written against a server
#            that leaves the header out, never sees an expired secret at the one that sends it.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund openid-client@6.9.0
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { createServer } from 'node:http';
import * as client from 'openid-client';

const refusal = { error: 'invalid_client', error_description: 'the secret has expired' };
let challenge;
const server = createServer((req, res) => {
  req.resume();
  res.writeHead(401, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...challenge });
  res.end(JSON.stringify(refusal));
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const till = new client.Configuration({ issuer, token_endpoint: `${issuer}/token` }, 'till', undefined, client.ClientSecretBasic('s'));
client.allowInsecureRequests(till);

async function refused(headers) {
  challenge = headers;
  const error = await client.clientCredentialsGrant(till, {}).then(assert.fail, (reason) => reason);
  const { name, code, status, error_description, response } = error;
  return { name, code, status, error: error.error, error_description, bodyUsed: response.bodyUsed };
}

try {
  const conforming = await refused({ 'WWW-Authenticate': 'Basic realm="login"' });
  const bare = await refused({});
  console.log(conforming, bare);
  assert.deepEqual(conforming, {
    name: 'WWWAuthenticateChallengeError',
    code: 'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
    status: 401,
    error: undefined,
    error_description: undefined,
    bodyUsed: false,
  });
  assert.deepEqual(bare, { name: 'ResponseBodyError', code: 'OAUTH_RESPONSE_BODY_ERROR', status: 401, ...refusal, bodyUsed: true });
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
