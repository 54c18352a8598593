/**
 * One contender in a process of its own, told by its parent over IPC: `node server.mjs`, then `{ contender, ... }`.
 * Answers `{ url }`, and to `'usage'` its CPU time in us since the question before.
 */
import { createServer } from 'node:http';

let before = process.cpuUsage();

process.on('message', (message) => {
  if (message === 'usage') process.send({ cpuUs: cpuUs() });
  else void start(message);
});
process.on('disconnect', () => process.exit());

async function start({ contender, ...options }) {
  const { mount } = await import(`./contenders/${contender}.mjs`);
  let listener;
  const server = createServer((req, res) => listener(req, res));
  server.listen(0, '127.0.0.1', async () => {
    const issuer = `http://127.0.0.1:${server.address().port}`;
    const { listener: answer, path, credentials } = await mount({ issuer, ...options });
    listener = answer;
    process.send({ url: issuer + path, credentials });
  });
}

function cpuUs() {
  const { user, system } = process.cpuUsage(before);
  before = process.cpuUsage();
  return user + system;
}
