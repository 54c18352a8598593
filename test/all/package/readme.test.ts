import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blocksOf } from '../../repository/docs/blocks';
import { collect, stop } from '../setup/process';
import { install } from './consumer';
import { node } from './npm';
import type { Ended } from './npm';
import { packTillgate } from './tarball';

let folder: string;
let installed: Ended;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-readme-'));
  const tarballs = await packTillgate('gate', 'testing');
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ dependencies: { express: '^5.0.0' }, devDependencies: { supertest: '^7.0.0' } }),
  );
  installed = await install(folder, tarballs);
}, 240_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the README, in an empty folder', () => {
  it('installs', () => {
    expect(installed).toMatchObject({ exitCode: 0, errors: '' });
  });

  it('starts an API with its first example, which asks for a token', async () => {
    const [first] = blocksOf('README.md');
    const listening = 'const server = app.listen(0, () => console.log(server.address().port));';
    const source = first?.source.replace('app.listen(3000);', listening);
    expect(source).toContain(listening);
    await writeFile(join(folder, 'server.mjs'), source ?? '');
    const child = spawn(process.execPath, ['server.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    const errors = collect(child.stderr);
    try {
      const port = await new Promise<string>((resolve, reject) => {
        child.stdout.once('data', (chunk: Buffer) => resolve(String(chunk).trim()));
        child.once('close', () => reject(new Error(errors())));
      });
      const response = await fetch(`http://127.0.0.1:${port}/v1/orders`);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ code: 'missing_token' });
    } finally {
      await stop(child);
    }
  });

  it.each([
    ['README.md', '2'],
    ['src/testing/README.md', '1'],
  ])('has an example of a test that passes with node --test: %s', async (page, passed) => {
    const example = blocksOf(page).find(({ source }) => source.startsWith('// orders.test.mjs'));
    await writeFile(join(folder, 'orders.test.mjs'), example?.source ?? '');
    const { exitCode, output } = await node(folder, '--test', 'orders.test.mjs');
    expect({ exitCode, passed: /^# pass (\d+)$|^\W+pass (\d+)$/m.exec(output)?.slice(1).join('') }).toEqual({
      exitCode: 0,
      passed,
    });
  });

  it('is that of its own package, next to a licence and what to do about security', () => {
    const home = join(folder, 'node_modules');
    for (const name of ['tillgate', '@tillgate/testing']) {
      const files = readdirSync(join(home, name));
      expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'SECURITY.md']));
    }
    expect(readFileSync(join(home, '@tillgate/testing/README.md'), 'utf8')).toMatch(/^# @tillgate\/testing\n/);
  });

  it('links to files of the package only', () => {
    const home = join(folder, 'node_modules/tillgate');
    const readme = readFileSync(join(home, 'README.md'), 'utf8');
    const targets = [...readme.matchAll(/\]\(([^)#]+)/g)].map(([, target = '']) => target);
    expect(targets.length).toBeGreaterThan(20);
    expect(targets.filter((target) => !existsSync(join(home, target)))).toEqual([]);
  });
});
