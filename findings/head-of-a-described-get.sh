#!/usr/bin/env bash
# Packages:  express 5.3.0, express-openapi-validator 5.6.2 (npm)
# Behaviour: Express responds to HEAD by the handler of GET. With the validator in front, a HEAD of a path whose description has `get`
#            alone is 405 with `Allow: GET`. The 401 for a missing token has no `WWW-Authenticate`.
# Seen:      HEAD without the validator 200, with it 405; GET without a token 401, www-authenticate: null.
# Surprise:  nobody describes HEAD beside every GET, so a load balancer's health check turns red on the day the validator is added.
#            RFC 9110 asks for HEAD wherever GET is, and for a challenge in every 401; a caller cannot tell this 401 from a broken token.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund express@5.3.0 express-openapi-validator@5.6.2
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import validator from 'express-openapi-validator';

const operation = (extra) => ({ get: { ...extra, responses: { 200: { description: 'OK' } } } });
const apiSpec = {
  openapi: '3.0.3',
  info: { title: 'Shop', version: '1' },
  components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  paths: { '/health': operation({}), '/orders': operation({ security: [{ token: [] }] }) },
};

async function serve(middleware, probe) {
  const app = express();
  app.use(middleware);
  app.get(['/health', '/orders'], (_req, res) => res.json({}));
  app.use((error, _req, res, _next) => res.status(error.status ?? 500).set(error.headers ?? {}).end());
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    return await probe(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const head = (base) => fetch(`${base}/health`, { method: 'HEAD' });
const bare = await serve((_req, _res, next) => next(), head);
const [described, refused] = await serve(validator.middleware({ apiSpec }), async (base) => [
  await head(base),
  await fetch(`${base}/orders`),
]);
console.log(bare.status, described.status, described.headers.get('allow'), refused.status, refused.headers.get('www-authenticate'));
assert.equal(bare.status, 200);
assert.equal(described.status, 405);
assert.equal(described.headers.get('allow'), 'GET');
assert.equal(refused.status, 401);
assert.equal(refused.headers.get('www-authenticate'), null);
EOF
node run.mjs
