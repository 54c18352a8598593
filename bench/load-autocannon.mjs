/** Sends a load with autocannon in its own process: `node load-autocannon.mjs '<Load as JSON>'` prints a `LoadResult` as JSON. */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

const {
  url,
  file,
  seconds,
  from = 0,
  lines = 'authorization',
  connections = 32,
  pipelining = 1,
} = JSON.parse(process.argv[2]);
const values = readFileSync(file, 'utf8').trimEnd().split('\n');
let at = from;

const SETUP = {
  authorization: (request, value) => ({
    ...request,
    headers: { ...request.headers, authorization: value },
  }),
  form: (request, value) => ({
    ...request,
    method: 'POST',
    headers: { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' },
    body: value,
  }),
};

const result = await autocannon({
  url,
  connections,
  pipelining,
  duration: seconds,
  requests: [{ setupRequest: (request) => SETUP[lines](request, values[at++ % values.length]) }],
});
console.log(
  JSON.stringify({
    responses: result['2xx'] + result.non2xx,
    seconds: result.duration,
    refused: result.non2xx,
    failed: result.errors + result.timeouts,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  }),
);
