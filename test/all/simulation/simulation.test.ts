import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FAULTS } from '../../simulation/faults';
import { isShortened } from '../../support/amount';

const WORLDS = isShortened ? 300 : 5_000;
const ROOT = join(__dirname, '../../..');

/** `npm run simulate` with these arguments; rejects unless its exit code is 0. */
async function simulate(...args: readonly string[]): Promise<string> {
  const command = ['--conditions=source', '--import', 'tsx', 'test/simulation/main.ts', ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: ROOT, maxBuffer: 2 ** 26 });
  return stdout;
}

it(`${WORLDS} worlds break no promise`, async () => {
  expect(await simulate('--seeds', String(WORLDS))).toContain(`| ${WORLDS.toLocaleString('en')} |`);
}, 1_800_000);

it('each planted fault breaks one, in the world that is known to show it', async () => {
  const report = await simulate('--planted-seeds');
  expect(FAULTS.filter(({ name, seed }) => !report.includes(`| ${name} |`) || seed === 0)).toEqual([]);
  expect(report).not.toContain('not found');
}, 600_000);
