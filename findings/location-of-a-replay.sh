#!/usr/bin/env bash
# Packages:  express-idempotency 1.0.6, express 5.3.0 (npm)
# Behaviour: a request with an `Idempotency-Key` that was carried out is answered again from the store when it is repeated. Of the first
#            response the status, the body and `Content-Type` come back, and `Location` and every other header do not. What a handler
#            sends by `res.end` is not stored, and a repetition is refused as still in progress.
# Seen:      first 201, location "/orders/1", body {"id":1}; repeated 201, location null, body {"id":1}; after `res.end` 201, then 500 "A
#            previous request is still in progress for this key." although the first one is over.
# Surprise:  the key is there for the caller that lost the first response. It gets a 201 without the URL of what it created (RFC 9110
#            section 15.3.2), or never learns that it created anything, while the caller that lost nothing sees no difference.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund express@5.3.0 express-idempotency@1.0.6
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import idempotent from 'express-idempotency';

let created = 0;
const create = (respond) => (req, res) => {
  if (idempotent.getSharedIdempotencyService().isHit(req)) return;
  created += 1;
  res.status(201).set({ Location: `/orders/${created}`, 'X-Request-Cost': '3' });
  respond(res, created);
};
const app = express();
app.use(idempotent.idempotency());
app.post('/orders', create((res, id) => res.json({ id })));
app.post('/ended', create((res, id) => res.end(String(id))));
app.use((error, _req, res, _next) => res.status(error.status ?? 500).end(error.message));
const server = app.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));

async function post(path) {
  const url = `http://127.0.0.1:${server.address().port}${path}`;
  const response = await fetch(url, { method: 'POST', headers: { 'Idempotency-Key': `key of ${path}` } });
  const { status, headers } = response;
  return { status, location: headers.get('location'), cost: headers.get('x-request-cost'), body: await response.text() };
}
try {
  const seen = { first: await post('/orders'), repeated: await post('/orders'), ended: await post('/ended'), again: await post('/ended') };
  console.log(seen, created);
  assert.deepEqual(seen, {
    first: { status: 201, location: '/orders/1', cost: '3', body: '{"id":1}' },
    repeated: { status: 201, location: null, cost: null, body: '{"id":1}' },
    ended: { status: 201, location: '/orders/2', cost: '3', body: '2' },
    again: { status: 500, location: null, cost: null, body: 'A previous request is still in progress for this key.' },
  });
  assert.equal(created, 2);
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
