#!/usr/bin/env bash
# Packages:  passport-http-bearer 1.0.1 with passport 0.7.0 and express 5.3.0; oauth4webapi 3.8.8 (npm)
# Behaviour: passport-http-bearer puts the message of a failure into `error_description` without escaping quotes. oauth4webapi then
#            finds no challenge at all in the 401, not even the realm that stands before the broken place.
# Seen:      Bearer realm="Users", error="invalid_token", error_description="client "till 9" is closed"; oauth4webapi reports
#            OAUTH_RESPONSE_IS_NOT_JSON. Without the quotes: OAUTH_WWW_AUTHENTICATE_CHALLENGE.
# Surprise:  a message with a name in quotes turns "your token is refused" into "the content type must be application/json" at the
#            caller, which looks for the fault in the body.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund express@5.3.0 passport@0.7.0 passport-http-bearer@1.0.1 oauth4webapi@3.8.8
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { processClientCredentialsResponse } from 'oauth4webapi';

passport.use(new Strategy((token, done) => done(null, false, token === 'a' ? 'client "till 9" is closed' : 'client till 9 is closed')));
const app = express();
app.get('/', passport.authenticate('bearer', { session: false }));
const server = app.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));

async function seen(token) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { authorization: `Bearer ${token}` } });
  const challenge = response.headers.get('www-authenticate');
  const code = await processClientCredentialsResponse({ issuer: 'https://login.example.com' }, { client_id: 'till-9' }, response).then(
    () => 'accepted',
    (error) => error.code,
  );
  return [response.status, challenge, code];
}

try {
  const [quoted, plain] = [await seen('a'), await seen('b')];
  console.log(quoted, plain);
  assert.deepEqual(quoted, [
    401,
    'Bearer realm="Users", error="invalid_token", error_description="client "till 9" is closed"',
    'OAUTH_RESPONSE_IS_NOT_JSON',
  ]);
  assert.deepEqual([plain[0], plain[2]], [401, 'OAUTH_WWW_AUTHENTICATE_CHALLENGE']);
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
