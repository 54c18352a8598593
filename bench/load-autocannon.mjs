/** Sends a load with autocannon in its own process: `node load-autocannon.mjs '<Load as JSON>'` prints a `LoadResult` as JSON. */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

const { url, host, file, seconds, from = 0, connections = 32, pipelining = 1 } = JSON.parse(process.argv[2]);
const values = readFileSync(file, 'utf8').trimEnd().split('\n');
let at = from;

function setupRequest(request) {
  const [authorization, dpop] = values[at++ % values.length].split('\t');
  return { ...request, headers: { ...request.headers, host, authorization, ...(dpop && { dpop }) } };
}

const result = await autocannon({
  url,
  connections,
  pipelining,
  duration: seconds,
  requests: [{ setupRequest }],
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
