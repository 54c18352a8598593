'use strict';
const { spawn } = require('node:child_process');
const { mkdtemp, rm } = require('node:fs/promises');
const { createServer } = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { connect } = require('@nats-io/transport-node');
const { jetstreamManager } = require('@nats-io/jetstream');
const { generationSourceCases } = require('tillgate/testing');
const { natsGenerations } = require('./nats-generations');

let folder, server, servers;
let streams = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nats-'));
  const port = await freePort();
  servers = `127.0.0.1:${port}`;
  server = spawn('nats-server', ['-js', '-a', '127.0.0.1', '-p', String(port), '-sd', folder], { stdio: 'ignore' });
  await (await connect({ servers, waitOnFirstConnect: true, reconnectTimeWait: 100 })).close();
});
after(async () => {
  server.kill();
  await rm(folder, { recursive: true, force: true });
});

async function create() {
  const name = `generations-${++streams}`;
  const source = natsGenerations({ servers, name });
  const other = () => Promise.resolve(natsGenerations({ servers, name }));
  return { source, another: other, wipe: () => removeStream(name), close: () => source.close() };
}

async function removeStream(name) {
  const connection = await connect({ servers });
  const manager = await jetstreamManager(connection);
  await manager.streams.purge(name);
  await connection.close();
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

for (const { name, run } of generationSourceCases({ create, timeoutMs: 5_000 })) void test(name, run);
