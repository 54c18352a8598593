import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cliScene } from '../../cli/harness';

it('init has the same project without types, which packing makes', async () => {
  const { dataDir, run } = cliScene();
  const [typed, plain] = [join(dataDir, 'typed'), join(dataDir, 'plain')];
  await run('init', typed);
  execFileSync(process.execPath, [join(__dirname, '../../../scripts/javascript.mjs'), typed, plain]);

  const filesOf = (folder: string) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const expected = filesOf(typed).filter((name) => name !== 'tsconfig.json');
  expect(filesOf(plain)).toEqual(expected.map((name) => name.replace(/\.ts$/, '.js')).sort());
  for (const name of filesOf(plain).filter((file) => file.endsWith('.js'))) {
    execFileSync(process.execPath, ['--check', join(plain, name)]);
    expect(readFileSync(join(plain, name), 'utf8')).not.toMatch(/__dirname|import type|@blank|from '\.[^']*(?<!\.js)'/);
  }
  const manifest = readFileSync(join(plain, 'package.json'), 'utf8');
  expect(JSON.parse(manifest)).toMatchObject({
    ...{ type: 'module', jest: { transform: {} } },
    scripts: { test: 'node --experimental-vm-modules node_modules/jest/bin/jest.js' },
  });
  expect(manifest).not.toMatch(/typescript|ts-jest|tsx|@types/);
});
