import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { closeAll, newDirectory, startServer } from './fixtures';

afterEach(closeAll);

const CHILD = join(__dirname, 'kill-child.ts');
const ROUNDS = 3;

/** Registers without a pause in a process of its own, kills it after `answers` answers, and tells what was answered. */
function registerUntilKilled(dataDir: string, answers: number): Promise<string[]> {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, dataDir]);
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += chunk));
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      output += chunk;
      // In the middle of whatever the process is at: reading, writing, renaming.
      if (output.split('\n').length > answers) child.kill('SIGKILL');
    });
    child.on('exit', (_code, signal) => {
      if (signal !== 'SIGKILL') return reject(new Error(`the process ended by itself: ${errors}`));
      // The last line may be torn: then it was not answered.
      resolve(output.split('\n').slice(0, -1));
    });
  });
}

it('kill -9 at any moment loses nothing that was answered', async () => {
  const rounds = Array.from({ length: ROUNDS }, async () => {
    const dataDir = newDirectory();
    return { dataDir, answered: await registerUntilKilled(dataDir, 5 + Math.floor(Math.random() * 60)) };
  });
  for (const { dataDir, answered } of await Promise.all(rounds)) {
    expect(answered.length).toBeGreaterThanOrEqual(5);
    const server = await startServer({ dataDir });
    const known = new Map(server.auth.list().map((client) => [client.client_id, client]));
    for (const line of answered) {
      const [clientId = '', secret = '', generation] = line.split(' ');
      const client = known.get(clientId);
      expect(client?.generation).toBe(Number(generation));
      expect((await server.token({ ...client!, client_secret: secret })).status).toBe(200);
    }
  }
}, 30_000);
