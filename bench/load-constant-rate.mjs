/**
 * Sends a load at a constant rate, evenly spaced, whether or not the responses keep up: `node load-constant-rate.mjs
 * '<Load as JSON>'` prints a `LoadResult` as JSON. A latency counts from the time at which its request was due, so a pause
 * of the server counts for every request of that time. (autocannon sends the requests of a second in one burst.)
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';
import { clearInterval, setInterval } from 'node:timers';

/** Connections open and the generator's own code is compiled in this time, which is not counted. */
const WARM_UP_MS = 1_000;

const { url, host, file, seconds, rate, from = 0, connections = 32 } = JSON.parse(process.argv[2]);
const { hostname, port, pathname } = new URL(url);
const requests = readFileSync(file, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.replace('\t', '\r\ndpop: '))
  .map((headers) => `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${headers}\r\n\r\n`);
const intervalMs = 1000 / rate;
const total = Math.ceil(((seconds * 1000 + WARM_UP_MS) / 1000) * rate);
const latencies = [];
let [responses, refused, failed, sent] = [0, 0, 0, 0];
/** Connections without a request, and requests that are due and wait for one. */
const idle = [];
const waiting = [];
let startedMs = 0;
let stolenBefore = 0;
let finish;
const finished = new Promise((resolve) => (finish = resolve));

/** Time that the hypervisor gave to others, of all cores in ms; Linux counts it in hundredths of a second. */
function stolenMs() {
  if (process.platform !== 'linux') return 0;
  return 10 * Number(readFileSync('/proc/stat', 'utf8').split('\n', 1)[0].trim().split(/\s+/)[8]);
}

function send(socket, index) {
  socket.write(requests[(from + index) % requests.length]);
  socket.index = index;
}

function settle(socket, status) {
  const { index } = socket;
  if (index * intervalMs >= WARM_UP_MS) latencies.push(performance.now() - startedMs - index * intervalMs);
  responses++;
  if (status < 200 || status > 299) refused++;
  if (waiting.length > 0) send(socket, waiting.shift());
  else idle.push(socket);
  if (responses === total) finish();
}

function open() {
  const socket = connect({ host: hostname, port });
  let received = '';
  socket.setNoDelay().setEncoding('latin1');
  socket.on('data', (text) => {
    received += text;
    const head = received.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? NaN);
    if (received.length < head + 4 + length) return;
    received = '';
    settle(socket, Number(text.slice(9, 12)));
  });
  socket.on('close', () => {
    failed += total - responses;
    finish();
  });
  return new Promise((resolve) => socket.once('connect', () => resolve(socket)));
}

idle.push(...(await Promise.all(Array.from({ length: connections }, open))));
startedMs = performance.now();
const timer = setInterval(() => {
  const due = Math.min(total, Math.floor((performance.now() - startedMs) / intervalMs) + 1);
  if (stolenBefore === 0 && due * intervalMs >= WARM_UP_MS) stolenBefore = stolenMs();
  for (; sent < due; sent++) {
    // The connection that has rested longest, so that each one is used.
    if (idle.length > 0) send(idle.shift(), sent);
    else waiting.push(sent);
  }
  if (sent === total) clearInterval(timer);
}, 1);
await finished;
const stolen = stolenMs() - stolenBefore;
const elapsed = (performance.now() - startedMs) / 1000;
latencies.sort((a, b) => a - b);
const percentile = (share) => latencies[Math.max(0, Math.ceil(latencies.length * share) - 1)];
const [p50Ms, p99Ms] = [percentile(0.5), percentile(0.99)];
console.log(JSON.stringify({ responses, refused, failed, seconds: elapsed, p50Ms, p99Ms, stolenMs: stolen }));
process.exit();
