#!/usr/bin/env bash
# Packages:  jose 6.2.18, jsonwebtoken 9.0.3, fast-jwt 6.3.6 (npm)
# Behaviour: at the moment that `exp` names, fast-jwt still accepts the token; jose and jsonwebtoken refuse it. A tolerance does not
#            change the edge: a token that ended 5 s ago is refused by both with a tolerance of 5 s and accepted with 6 s. `nbf` is
#            inclusive on the other side: 5 s too early with a tolerance of 5 s is accepted.
# Seen:      exp = now: ERR_JWT_EXPIRED, "jwt expired", accepted; exp = now - 5: refused with 5, accepted with 6; nbf = now + 5: accepted.
# Surprise:  one `clockTolerance` is exclusive for `exp` and inclusive for `nbf`, so a test at the edge that was written for one
#            claim fails for the other, and a test written for one library fails with the next.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18 jsonwebtoken@9.0.3 fast-jwt@6.3.6
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { jwtVerify } from 'jose';
import jsonwebtoken from 'jsonwebtoken';
import { createVerifier } from 'fast-jwt';

const secret = 'a-secret-of-at-least-thirty-two-bytes';
const now = 2_000_000_000;
const sign = (claims) => jsonwebtoken.sign(claims, secret, { noTimestamp: true });

const withJose = (claims, clockTolerance = 0) =>
  jwtVerify(sign(claims), new TextEncoder().encode(secret), { currentDate: new Date(now * 1000), clockTolerance }).then(
    () => 'accepted',
    (error) => error.code,
  );
function attempt(verify) {
  try {
    verify();
    return 'accepted';
  } catch (error) {
    return error.message;
  }
}
const withJsonwebtoken = (claims, clockTolerance = 0) =>
  attempt(() => jsonwebtoken.verify(sign(claims), secret, { clockTimestamp: now, clockTolerance }));
const withFastJwt = (claims) => attempt(() => createVerifier({ key: secret, clockTimestamp: now * 1000 })(sign(claims)));

const reached = [await withJose({ exp: now }), withJsonwebtoken({ exp: now }), withFastJwt({ exp: now })];
const five = [await withJose({ exp: now - 5 }, 5), withJsonwebtoken({ exp: now - 5 }, 5)];
const six = [await withJose({ exp: now - 5 }, 6), withJsonwebtoken({ exp: now - 5 }, 6)];
const early = [await withJose({ nbf: now + 5 }, 5), withJsonwebtoken({ nbf: now + 5 }, 5)];
console.log({ reached, five, six, early });
assert.deepEqual(reached, ['ERR_JWT_EXPIRED', 'jwt expired', 'accepted']);
assert.deepEqual(five, ['ERR_JWT_EXPIRED', 'jwt expired']);
assert.deepEqual(six, ['accepted', 'accepted']);
assert.deepEqual(early, ['accepted', 'accepted']);
EOF
node run.mjs
