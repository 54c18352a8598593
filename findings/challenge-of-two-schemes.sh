#!/usr/bin/env bash
# Packages:  @modelcontextprotocol/sdk 1.32.2, oauth4webapi 3.8.8 (npm), mcp 2.3.0 (PyPI)
# Behaviour: a 401 names two schemes, DPoP and Bearer, as RFC 9449 section 7.1 shows. The TypeScript SDK reads the first challenge only and
#            finds no `resource_metadata` (RFC 9728 section 5.1) when that is DPoP; the Python SDK finds it. With Bearer first it takes
#            `scope` and `error` from the DPoP challenge. Both take a scope out of the text of `error_description`.
# Seen:      DPoP first: TypeScript {}, Python the URL, oauth4webapi two challenges. Bearer first: scope "stock:write", error
#            "use_dpop_nonce". A description "scope=all is not granted": scope "all" in both SDKs, "orders:read" in oauth4webapi.
# Surprise:  a server may name its schemes in either order, and one of the two ends discovery. In the other one the client asks for a
#            scope that another scheme has named, and in the last case for one that stands in a sentence for people.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund @modelcontextprotocol/sdk@1.32.2 oauth4webapi@3.8.8
python3 -m venv env
env/bin/pip install --quiet --no-compile --disable-pip-version-check mcp==2.3.0 httpx==0.28.1
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js';
import { WWWAuthenticateChallengeError, processClientCredentialsResponse } from 'oauth4webapi';

const metadata = 'https://api.example/.well-known/oauth-protected-resource';
const bearer = `Bearer resource_metadata="${metadata}"`;
const headers = {
  dpopFirst: ['DPoP algs="ES256"', bearer],
  bearerFirst: [bearer, 'DPoP algs="ES256", error="use_dpop_nonce", scope="stock:write"'],
  described: ['Bearer error="insufficient_scope", error_description="scope=all is not granted", scope="orders:read"'],
};
const server = createServer((req, res) => {
  res.writeHead(401, { 'WWW-Authenticate': headers[req.url.slice(1)] }).end();
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const parsed = async (response) => {
  const error = await processClientCredentialsResponse({ issuer: 'https://as.example' }, { client_id: 'a' }, response).catch((e) => e);
  assert.ok(error instanceof WWWAuthenticateChallengeError);
  return error.cause.map(({ scheme, parameters }) => ({ scheme, ...parameters }));
};
try {
  const seen = {};
  for (const name of Object.keys(headers)) {
    const response = await fetch(`http://127.0.0.1:${server.address().port}/${name}`);
    const { resourceMetadataUrl, ...rest } = extractWWWAuthenticateParams(response);
    seen[name] = { sdk: { url: resourceMetadataUrl?.href, ...rest }, oauth4webapi: await parsed(response) };
  }
  console.dir(seen, { depth: null });
  assert.deepEqual(seen.dpopFirst.sdk, { url: undefined });
  assert.deepEqual(seen.dpopFirst.oauth4webapi, [
    { scheme: 'dpop', algs: 'ES256' },
    { scheme: 'bearer', resource_metadata: metadata },
  ]);
  assert.deepEqual(seen.bearerFirst.sdk, { url: metadata, scope: 'stock:write', error: 'use_dpop_nonce' });
  assert.equal(seen.described.sdk.scope, 'all');
  assert.equal(seen.described.oauth4webapi[0].scope, 'orders:read');
  writeFileSync('headers.json', JSON.stringify(headers));
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
cat > run.py <<'EOF'
import json

import httpx
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth, extract_scope_from_www_auth

with open('headers.json') as file:
    headers = json.load(file)
seen = {}
for name, lines in headers.items():
    response = httpx.Response(401, headers=[('WWW-Authenticate', line) for line in lines])
    seen[name] = (extract_resource_metadata_from_www_auth(response), extract_scope_from_www_auth(response))
print(seen)
assert seen['dpopFirst'][0] == 'https://api.example/.well-known/oauth-protected-resource'
assert seen['bearerFirst'][1] == 'stock:write'
assert seen['described'][1] == 'all'
EOF
node run.mjs
env/bin/python run.py
