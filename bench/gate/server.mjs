/**
 * One contender in its own process, controlled over IPC: the parent sends `{ contender, ... }` and gets `{ port }`; it sends
 * `'usage'` and gets CPU time, time on the event loop, and event loop delay since the previous `'usage'`, and
 * memory.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { createPublicKey } from 'node:crypto';
import express from 'express';

const delay = monitorEventLoopDelay({ resolution: 5 });
let before = process.cpuUsage();
let loopBefore = performance.eventLoopUtilization();

process.on('message', (message) => {
  if (message === 'usage') process.send(usage());
  else void start(message);
});
process.on('disconnect', () => process.exit());

async function start({ contender, jwks, ...context }) {
  const { mount } = await import(`./contenders/${contender}.mjs`);
  const publicKey = createPublicKey({ key: jwks.keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const app = express();
  const respond = (_req, res) => res.json({ data: [{ id: 'order-1', total: { amount: 1250, currency: 'EUR' } }] });
  await mount(app, { ...context, jwks, publicKey, respond });
  const server = app.listen(0, '127.0.0.1', () => {
    delay.enable();
    process.send({ port: server.address().port });
  });
}

function usage() {
  const { user, system } = process.cpuUsage(before);
  before = process.cpuUsage();
  const delayP99Ms = delay.percentile(99) / 1e6;
  delay.reset();
  const loopUs = performance.eventLoopUtilization(loopBefore).active * 1000;
  loopBefore = performance.eventLoopUtilization();
  const { rss, heapUsed } = process.memoryUsage();
  return { cpuUs: user + system, loopUs, delayP99Ms, rss, heapUsed };
}
