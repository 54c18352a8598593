#!/usr/bin/env bash
# Packages:  PyJWT 2.15.1 (PyPI), jose 6.2.18 and jsonwebtoken 9.0.3 (npm)
# Behaviour: without any option, a token whose `iat` lies 30 s in the future is refused by PyJWT and accepted by jose and jsonwebtoken.
#            With a leeway of 31 s PyJWT accepts it.
# Seen:      jose accepted, jsonwebtoken accepted, PyJWT ImmatureSignatureError "The token is not yet valid (iat)", then accepted.
# Surprise:  RFC 7519 gives `iat` no such meaning; `nbf` has it. When the clock of a token server runs ahead, the APIs in Python refuse
#            every new token for that long while those in JavaScript beside them accept it, and no token has an `nbf`.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18 jsonwebtoken@9.0.3
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check PyJWT==2.15.1
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { jwtVerify } from 'jose';
import jsonwebtoken from 'jsonwebtoken';

const secret = 'a-secret-of-at-least-thirty-two-bytes';
const now = Math.floor(Date.now() / 1000);
const token = jsonwebtoken.sign({ iat: now + 30, exp: now + 600 }, secret);
assert.equal((await jwtVerify(token, new TextEncoder().encode(secret))).payload.iat, now + 30);
assert.equal(jsonwebtoken.verify(token, secret).iat, now + 30);
console.log('jose accepted, jsonwebtoken accepted');
writeFileSync('token', token);
EOF
cat > run.py <<'EOF'
import jwt

SECRET = 'a-secret-of-at-least-thirty-two-bytes'
with open('token') as file:
    token = file.read()
try:
    jwt.decode(token, SECRET, ['HS256'])
    seen = 'accepted'
except jwt.ImmatureSignatureError as error:
    seen = str(error)
print('PyJWT', seen)
assert seen == 'The token is not yet valid (iat)'
assert 'iat' in jwt.decode(token, SECRET, ['HS256'], leeway=31)
EOF
node run.mjs
env/bin/python run.py
