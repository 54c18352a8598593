import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';
import { closeAll, newDirectory } from '../../cli/auth-server/fixtures';

afterEach(closeAll);

it('the process lives when another middleware has responded already, at every endpoint', async () => {
  // A process of its own: a crash inside Jest could go unnoticed.
  const script = join(COMPILED, 'test/all/auth-server/responded-child.js');
  const child = spawn(process.execPath, [script, newDirectory()]);
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  const ended = await new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })));
  expect({ ended, errors }).toEqual({ ended: { code: 0, signal: null }, errors: '' });
  const lines = output.trim().split('\n');
  expect(lines).toHaveLength(2 * 15);
  const first = lines.filter((line) => line.startsWith('respondFirst'));
  expect(first.every((line) => line.endsWith(' 504'))).toBe(true);
  expect(lines).toContain('respondMeanwhile POST /connect/token 504');
  expect(lines).toContain('respondMeanwhile PATCH /clients/pos-17 504');
});
