#!/usr/bin/env bash
# Packages:  express-rate-limit 8.7.5, express 5.3.0 (npm)
# Behaviour: one response carries both families of headers. `X-RateLimit-Reset` is a point in time (seconds since 1970), `RateLimit-Reset`
#            a duration (seconds left). A window of 1.5 s is announced as `w=2`, and a window of 0.4 s asks for a wait of 1 s.
# Seen:      x-ratelimit-reset 1795837639, ratelimit-reset 2, ratelimit-policy 1;w=2, retry-after 2; the short window: retry-after 1.
# Surprise:  two headers that differ by two letters need two ways of reading: a caller that takes the one for the other waits for
#            decades or not at all.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund express@5.3.0 express-rate-limit@8.7.5
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import { rateLimit } from 'express-rate-limit';

const app = express();
const limiter = (windowMs) => rateLimit({ windowMs, limit: 1, legacyHeaders: true, standardHeaders: 'draft-6' });
app.get('/long', limiter(1500), (_req, res) => res.json({}));
app.get('/short', limiter(400), (_req, res) => res.json({}));
const server = app.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const second = async (path) => {
  const url = `http://127.0.0.1:${server.address().port}${path}`;
  await (await fetch(url)).text();
  return fetch(url);
};
try {
  const [long, short] = [await second('/long'), await second('/short')];
  const of = (name) => long.headers.get(name);
  const seen = [of('x-ratelimit-reset'), of('ratelimit-reset'), of('ratelimit-policy'), of('retry-after')];
  console.log(long.status, seen, short.status, short.headers.get('retry-after'));
  assert.deepEqual([long.status, short.status], [429, 429]);
  assert.ok(Number(seen[0]) > 1_700_000_000);
  assert.deepEqual(seen.slice(1), ['2', '1;w=2', '2']);
  assert.equal(short.headers.get('retry-after'), '1');
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
