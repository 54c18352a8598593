#!/usr/bin/env bash
# Packages:  jose 6.2.18, jsonwebtoken 9.0.3 (npm)
# Behaviour: the greatest age of a token is `maxTokenAge` in jose and `maxAge` in jsonwebtoken. A token of exactly that age is accepted
#            by jose and refused by jsonwebtoken; a token whose `iat` lies in the future is refused by jose and accepted by jsonwebtoken.
#            Without the option both accept the future `iat`.
# Seen:      age 10 of 10: jose accepts, jsonwebtoken "maxAge exceeded"; iat + 100: jose ERR_JWT_CLAIM_VALIDATION_FAILED, jsonwebtoken accepts.
# Surprise:  an option that asks whether a token is too old makes jose refuse one that is too new. With a clock one second behind, an
#            API loses every new token only after somebody has limited their age.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18 jsonwebtoken@9.0.3
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { jwtVerify } from 'jose';
import jsonwebtoken from 'jsonwebtoken';

const secret = 'a-secret-of-at-least-thirty-two-bytes';
const now = 2_000_000_000;

async function verdicts(iat, age) {
  const token = jsonwebtoken.sign({ iat, exp: now + 600 }, secret);
  const jose = await jwtVerify(token, new TextEncoder().encode(secret), {
    currentDate: new Date(now * 1000),
    ...(age === undefined ? {} : { maxTokenAge: age }),
  }).then(
    () => 'accepted',
    (error) => error.code,
  );
  try {
    jsonwebtoken.verify(token, secret, { clockTimestamp: now, ...(age === undefined ? {} : { maxAge: age }) });
    return [jose, 'accepted'];
  } catch (error) {
    return [jose, error.message];
  }
}

const seen = { old: await verdicts(now - 10, 10), future: await verdicts(now + 100, 10), free: await verdicts(now + 100) };
console.log(seen);
assert.deepEqual(seen, {
  old: ['accepted', 'maxAge exceeded'],
  future: ['ERR_JWT_CLAIM_VALIDATION_FAILED', 'accepted'],
  free: ['accepted', 'accepted'],
});
EOF
node run.mjs
