#!/usr/bin/env bash
# Packages:  jsrsasign 11.1.5, jose 6.2.18 (npm)
# Behaviour: a token with `aud` ["orders","stock"] is for both. jose with the audience "orders" accepts it, as RFC 7519 section 4.1.3 has it;
#            `KJUR.jws.JWS.verifyJWT` of jsrsasign wants each audience of the token in its own list and returns false.
# Seen:      list ["orders"]: aud "orders" and ["orders"] true, ["orders","stock"] false; list ["orders","stock"]: true.
# Surprise:  a list of one is enough until the token server adds a second API to the same token. The service that is named first in the
#            token refuses it from then on, with a bare `false` that looks like a bad signature.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund jsrsasign@11.1.5 jose@6.2.18
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { SignJWT, jwtVerify } from 'jose';
import jsrsasign from 'jsrsasign';

const text = 'a-secret-of-at-least-thirty-two-bytes';
const secret = new TextEncoder().encode(text);
const verify = (token, aud) => jsrsasign.KJUR.jws.JWS.verifyJWT(token, { utf8: text }, { alg: ['HS256'], aud });
const seen = [];
for (const aud of ['orders', ['orders'], ['orders', 'stock']]) {
  const token = await new SignJWT({ aud }).setProtectedHeader({ alg: 'HS256' }).setIssuedAt().setExpirationTime('5m').sign(secret);
  assert.deepEqual((await jwtVerify(token, secret, { audience: 'orders' })).payload.aud, aud);
  seen.push([aud, verify(token, ['orders']), verify(token, ['orders', 'stock'])]);
}
console.log('jose accepted all; jsrsasign:', seen);
assert.deepEqual(seen, [
  ['orders', true, true],
  [['orders'], true, true],
  [['orders', 'stock'], false, true],
]);
EOF
node run.mjs
