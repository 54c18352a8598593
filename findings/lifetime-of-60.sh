#!/usr/bin/env bash
# Packages:  jose 6.2.18, jsonwebtoken 9.0.3, fast-jwt 6.3.6 (npm)
# Behaviour: the number 60, given as the lifetime of a token, means 60 seconds to jsonwebtoken, 60 milliseconds to fast-jwt, and the
#            60th second of the year 1970 to jose. The string '60' is milliseconds to jsonwebtoken too.
# Seen:      exp - iat: jsonwebtoken 60 (number) and 0 (string), fast-jwt 0; jose: exp = 60.
# Surprise:  who moves from one library to another keeps the line and gets tokens that are expired when they are issued. No library
#            raises an error; the API says "expired", so that one looks at the clocks first.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18 jsonwebtoken@9.0.3 fast-jwt@6.3.6
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { SignJWT, decodeJwt } from 'jose';
import jsonwebtoken from 'jsonwebtoken';
import { createSigner } from 'fast-jwt';

const secret = 'a-secret-of-at-least-thirty-two-bytes';
const lifetime = (token) => {
  const { exp, iat } = decodeJwt(token);
  return exp - iat;
};

const seconds = lifetime(jsonwebtoken.sign({ sub: 'till-1' }, secret, { expiresIn: 60 }));
const text = lifetime(jsonwebtoken.sign({ sub: 'till-1' }, secret, { expiresIn: '60' }));
const milliseconds = lifetime(createSigner({ key: secret, expiresIn: 60 })({ sub: 'till-1' }));
const absolute = await new SignJWT({ sub: 'till-1' })
  .setProtectedHeader({ alg: 'HS256' })
  .setIssuedAt()
  .setExpirationTime(60)
  .sign(new TextEncoder().encode(secret));

console.log({ seconds, text, milliseconds, joseExp: decodeJwt(absolute).exp });
assert.equal(seconds, 60);
assert.ok(text <= 1);
assert.ok(milliseconds <= 1);
assert.equal(decodeJwt(absolute).exp, 60);
EOF
node run.mjs
