import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';
import { closeAll, newDirectory, startServer } from '../../cli/auth-server/fixtures';

afterEach(closeAll);

const CHILD = join(COMPILED, 'test/all/auth-server/kill-child.js');
const ROUNDS = 3;

/** Registers without a pause in a process of its own, kills it after `count` responses, and returns the lines of all responses. */
function registerUntilKilled(dataDir: string, count: number): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, dataDir]);
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += chunk));
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      output += chunk;
      // In the middle of whatever the process is at: reading, writing, renaming.
      if (output.split('\n').length > count) child.kill('SIGKILL');
    });
    child.on('exit', (_code, signal) => {
      if (signal !== 'SIGKILL') return reject(new Error(`the process ended by itself: ${errors}`));
      // The last line may be torn: then it does not count.
      resolve(output.split('\n').slice(0, -1));
    });
  });
}

it('kill -9 at any moment loses no change that a response has confirmed', async () => {
  const rounds = Array.from({ length: ROUNDS }, async () => {
    const dataDir = newDirectory();
    return { dataDir, confirmed: await registerUntilKilled(dataDir, 5 + Math.floor(Math.random() * 60)) };
  });
  for (const { dataDir, confirmed } of await Promise.all(rounds)) {
    expect(confirmed.length).toBeGreaterThanOrEqual(5);
    const server = await startServer({ dataDir });
    const known = new Map(server.auth.list().map((client) => [client.client_id, client]));
    for (const line of confirmed) {
      const [clientId = '', secret = '', generation] = line.split(' ');
      const client = known.get(clientId);
      expect(client?.generation).toBe(Number(generation));
      expect((await server.token({ ...client!, published: true, client_secret: secret })).status).toBe(200);
    }
  }
});
