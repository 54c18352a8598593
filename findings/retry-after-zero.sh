#!/usr/bin/env bash
# Packages:  retry-axios 4.0.3 with axios 1.21.1, got 14.6.6, ky 1.14.3 (npm)
# Behaviour: `Retry-After: 0`, or a date that is just past, means "come back now" (RFC 9110 section 10.2.3). ky comes back immediately.
#            retry-axios, which retries a 503 without the header and with `1`, gives up. got comes immediately after the past date, and
#            after `0` waits as long as without the header.
# Seen:      retry-axios: 1 request for 0 and for the date, the 503 is thrown; 2 requests for 1 and without the header. ky: 2 requests. got:
#            2 requests, after 1 s for 0 and at once for the date.
# Surprise:  the server that is ready again is the one whose caller fails. A server that rounds down says 0 in the last second of a limit,
#            so it happens now and then, and in no test that waits for a round number of seconds.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund retry-axios@4.0.3 axios@1.21.1 got@14.6.6 ky@1.14.3
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { createServer } from 'node:http';
import axios from 'axios';
import got from 'got';
import ky from 'ky';
import { attach } from 'retry-axios';

let header;
let times = [];
const server = createServer((_req, res) => {
  times.push(Date.now());
  if (times.length > 1) return res.end('OK');
  return res.writeHead(503, header ? { 'Retry-After': header } : {}).end();
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const url = `http://127.0.0.1:${server.address().port}`;
const instance = axios.create();
attach(instance);
const clients = {
  retryAxios: async () => (await instance.get(url, { raxConfig: { instance } })).status,
  got: async () => (await got(url)).statusCode,
  ky: async () => (await ky(url)).status,
};
const headers = { none: undefined, one: '1', zero: '0', past: new Date(Date.now() - 5000).toUTCString() };
try {
  const seen = {};
  for (const [name, send] of Object.entries(clients)) {
    for (const [kind, value] of Object.entries(headers)) {
      [header, times] = [value, []];
      const status = await send().catch((error) => error.response.status);
      seen[`${name} ${kind}`] = { status, requests: times.length, waitedMs: times.length > 1 ? times[1] - times[0] : undefined };
    }
  }
  console.table(seen);
  for (const key of ['retryAxios zero', 'retryAxios past']) assert.deepEqual(seen[key], { status: 503, requests: 1, waitedMs: undefined });
  for (const key of Object.keys(seen).filter((row) => !/^retryAxios (zero|past)$/.test(row))) {
    assert.deepEqual([seen[key].status, seen[key].requests], [200, 2]);
  }
  assert.ok(seen['got zero'].waitedMs > 900);
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
node run.mjs
