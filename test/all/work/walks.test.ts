import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(__dirname, '../../..');

it('no walk goes through more files and functions than its row of bench/walks.ts allows', async () => {
  const flags = ['--no-opt', '--conditions=source', '--import', 'tsx'];
  const env = { ...process.env, NODE_ENV: 'production' };
  const { stdout } = await run(process.execPath, [...flags, 'bench/walks.ts'], { cwd: ROOT, env });
  const rows = [...stdout.matchAll(/^(\S.*?) +(\d+) +(\d+) +(\d+) +(\d+)$/gm)];
  const [names, counts] = [rows.map(([, name]) => name), rows.map(([, , ...numbers]) => numbers.map(Number))];
  expect(names).toEqual(['known token', 'new token', 'expired token', 'no token', 'authenticate(options)']);
  expect(
    counts.filter(
      ([files = 0, maxFiles = 0, functions = 0, maxFunctions = 0]) => files > maxFiles || functions > maxFunctions,
    ),
  ).toEqual([]);
});
