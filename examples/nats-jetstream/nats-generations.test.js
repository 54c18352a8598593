'use strict';
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdtemp, readFile, rm } = require('node:fs/promises');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { connect } = require('@nats-io/transport-node');
const { jetstreamManager } = require('@nats-io/jetstream');
const { generationSourceCases } = require('@tillgate/testing');
const { natsGenerations } = require('./nats-generations');

let folder, server, servers;
let streams = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nats-'));
  // The server takes a free port and writes it to a file in the folder.
  const flags = ['-js', '-a', '127.0.0.1', '-p', '-1', '--ports_file_dir', folder, '-sd', folder];
  server = spawn('nats-server', flags, { stdio: 'ignore' });
  servers = await addressOf(server);
});
after(async () => {
  server.kill();
  // The server writes to its folder until it has ended, and its children for a moment longer.
  await once(server, 'exit');
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

async function create() {
  const name = `generations-${++streams}`;
  const source = natsGenerations({ servers, name });
  const other = () => Promise.resolve(natsGenerations({ servers, name }));
  return { source, another: other, wipe: () => removeStream(name), stall, close: () => source.close() };
}

/** The server gets no time of the machine. */
function stall() {
  server.kill('SIGSTOP');
  return Promise.resolve(() => Promise.resolve(server.kill('SIGCONT')));
}

async function removeStream(name) {
  const connection = await connect({ servers });
  const manager = await jetstreamManager(connection);
  await manager.streams.purge(name);
  await connection.close();
}

async function addressOf({ pid }) {
  for (;;) {
    try {
      const { nats } = JSON.parse(await readFile(join(folder, `nats-server_${pid}.ports`), 'utf8'));
      return nats[0];
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

for (const { name, run } of generationSourceCases({ create, timeoutMs: 5_000 })) void test(name, run);
