import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const MAIN = resolve(__dirname, '../../../src/cli/main.ts');
const EXPRESS = JSON.stringify(pathToFileURL(require.resolve('express')).href);
const folder = mkdtempSync(join(tmpdir(), 'tillgate-esm-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('tillgate routes --app', () => {
  it.each([
    ['the default', 'default.mjs', `export default express().get('/livez', (req, res) => res.end());`],
    ['a name', 'name.mjs', `export const app = express().get('/livez', (req, res) => res.end());`],
    [
      'a module that waits at its top',
      'waiting.mjs',
      `await null; export const app = express().get('/livez', (req, res) => res.end());`,
    ],
  ])('finds the app of an ES module that exports it as %s', async (_what, name, text) => {
    const file = join(folder, name);
    writeFileSync(file, `import express from ${EXPRESS}; ${text}`);
    const argv = ['--conditions=source', '--import', 'tsx', MAIN, 'routes', '--json', '--app', file];
    const { stdout } = await promisify(execFile)(process.execPath, argv);
    expect(JSON.parse(stdout)).toEqual([{ method: 'GET', path: '/livez', requires: [], gate: 'none' }]);
  });
});
