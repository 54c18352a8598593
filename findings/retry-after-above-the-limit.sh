#!/usr/bin/env bash
# Packages:  undici 7.30.2, got 14.6.6 (npm)
# Behaviour: a server says 503 with `Retry-After: 3`, and the client's limit is below that. undici's RetryAgent (`maxTimeout`) shortens
#            the wait to its limit and asks too early; got (`maxRetryAfter`) does not retry at all.
# Seen:      limit 700 ms: undici sends its second request after less than 2 s; got sends one request and throws the 503 at once.
# Surprise:  the same limit means "come sooner than you were told" in one and "give up" in the other. A server that
#            asks for rest gets its next request early from the one, and none from the other.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund undici@7.30.2 got@14.6.6
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { createServer } from 'node:http';
import got from 'got';
import { Agent, RetryAgent, request } from 'undici';

const requests = { '/undici': [], '/got': [] };
const server = createServer((req, res) => {
  requests[req.url].push(Date.now());
  if (requests[req.url].length > 1) return res.end('OK');
  return res.writeHead(503, { 'Retry-After': '3' }).end();
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const base = `http://127.0.0.1:${server.address().port}`;
const dispatcher = new RetryAgent(new Agent(), { maxTimeout: 700 });
try {
  const early = (await request(`${base}/undici`, { dispatcher })).statusCode;
  const never = await got(`${base}/got`, { retry: { maxRetryAfter: 700 } }).then(
    () => 'accepted',
    (error) => error.response?.statusCode,
  );
  const [first, second] = requests['/undici'];
  console.log({ early, waitedMs: second - first, never, requestsOfGot: requests['/got'].length });
  assert.equal(early, 200);
  assert.ok(second - first < 2000);
  assert.equal(never, 503);
  assert.equal(requests['/got'].length, 1);
} finally {
  await dispatcher.close();
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
