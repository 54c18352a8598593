/** A load by autocannon, in a process of its own: `node load-autocannon.mjs '<Load as JSON>'` prints `Answers` as JSON. */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

const { url, file, seconds, from = 0, connections = 32, rate } = JSON.parse(process.argv[2]);
const values = readFileSync(file, 'utf8').trimEnd().split('\n');
let at = from;

const result = await autocannon({
  url,
  connections,
  duration: seconds,
  ...(rate && { overallRate: rate }),
  requests: [
    {
      setupRequest(request) {
        const value = values[at++ % values.length];
        return { ...request, headers: { ...request.headers, ...(value !== '-' && { authorization: value }) } };
      },
    },
  ],
});
console.log(
  JSON.stringify({
    answered: result['2xx'] + result.non2xx,
    seconds: result.duration,
    refused: result.non2xx,
    failed: result.errors + result.timeouts,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  }),
);
