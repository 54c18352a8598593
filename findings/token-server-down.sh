#!/usr/bin/env bash
# Packages:  express-oauth2-jwt-bearer 1.10.0, express 5.3.0, jose 6.2.18 (npm)
# Behaviour: while the metadata of the authorization server cannot be had, a good token is refused with 401 invalid_token. When the
#            metadata is there, the same token is accepted. A request without a token is offered DPoP though no option asks for it.
# Seen:      metadata 503: 401, error="invalid_token", error_description="Failed to fetch authorization server metadata"; later 200.
# Surprise:  a caller that believes the 401 throws a good token away and asks the server that is down for another one. RFC 9110 has 503
#            for a server that cannot tell.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund express@5.3.0 express-oauth2-jwt-bearer@1.10.0 jose@6.2.18
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { createServer } from 'node:http';
import express from 'express';
import { auth } from 'express-oauth2-jwt-bearer';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';

const { publicKey, privateKey } = await generateKeyPair('RS256');
const keys = [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'RS256', use: 'sig' }];
let down = true;
const listen = async (server) => {
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${server.address().port}`;
};
const login = createServer((req, res) => {
  if (down) return res.writeHead(503).end();
  const metadata = { issuer: `${issuer}/`, jwks_uri: `${issuer}/jwks`, id_token_signing_alg_values_supported: ['RS256'] };
  return res.setHeader('content-type', 'application/json').end(JSON.stringify(req.url === '/jwks' ? { keys } : metadata));
});
const issuer = await listen(login);
const app = express();
app.use(auth({ issuerBaseURL: issuer, audience: 'orders' }));
app.get('/', (_req, res) => res.json({}));
app.use((error, _req, res, _next) => res.status(error.status ?? 500).set(error.headers ?? {}).end());
const api = createServer(app);
const url = await listen(api);
const token = await new SignJWT({ iss: `${issuer}/`, aud: 'orders', sub: 'till-1' })
  .setProtectedHeader({ alg: 'RS256', kid: '1' })
  .setIssuedAt()
  .setExpirationTime('5m')
  .sign(privateKey);
const call = async (headers) => {
  const response = await fetch(url, { headers });
  return [response.status, response.headers.get('www-authenticate')];
};
try {
  const before = await call({ authorization: `Bearer ${token}` });
  down = false;
  const after = await call({ authorization: `Bearer ${token}` });
  const without = await call({});
  console.log({ before, after, without });
  assert.equal(before[0], 401);
  assert.match(before[1], /error="invalid_token", error_description="Failed to fetch authorization server metadata"/);
  assert.equal(after[0], 200);
  assert.equal(without[0], 401);
  assert.match(without[1], /DPoP algs=/);
} finally {
  for (const server of [login, api]) {
    server.close();
    server.closeAllConnections();
  }
}
EOF
node run.mjs
