import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';
import { newDataDir } from '../../cli/data-dir';

const project = newDataDir();
afterAll(() => rmSync(project, { recursive: true, force: true }));

const EXPRESS = JSON.stringify(require.resolve('express'));
mkdirSync(join(project, 'lib'));
writeFileSync(
  join(project, 'app.cjs'),
  `const { version } = require('./lib/version.cjs');
   module.exports = require(${EXPRESS})().get('/', (req, res) => res.json(version));`,
);

/** Saves as most editors do: into another file, which then takes the place of the first. */
function save(source: string): void {
  const path = join(project, 'lib/version.cjs');
  writeFileSync(`${path}.tmp`, source);
  renameSync(`${path}.tmp`, path);
}

/** Waits until a stream has said something new. */
async function said(stream: ChildProcessWithoutNullStreams['stdout'], end: RegExp): Promise<string> {
  let text = '';
  while (!end.test(text)) text += String(((await once(stream, 'data')) as [Buffer])[0]);
  return text;
}

it('dev --watch starts again each time a file is saved, also after one that does not load, and stops', async () => {
  save('exports.version = 1;');
  const child = spawn(
    process.execPath,
    [join(COMPILED, 'src/cli/main.js'), 'dev', '--json', '--watch', '--app', 'app.cjs'],
    {
      cwd: project,
      env: {
        PATH: process.env['PATH'],
        ...{ TILLGATE_DATA_DIR: project, TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'warn' },
      },
    },
  );
  const version = async (): Promise<unknown> => {
    const { base_url } = JSON.parse(await said(child.stdout, /\n\}\n$/)) as { base_url: string };
    return (await fetch(base_url)).json();
  };
  const exit = once(child, 'exit');
  try {
    expect(await version()).toBe(1);
    save('exports.version = 2;');
    expect(await version()).toBe(2);
    const broken = said(child.stderr, /ended/);
    save('exports.version = ;');
    expect(await broken).toMatch(
      /^tillgate: version\.cjs has changed, starts again\n[^]*app\.cjs: cannot be loaded[^]*tillgate: ended with exit code 2; starts again when a file changes\n$/,
    );
    save('exports.version = 3;');
    expect(await version()).toBe(3);
  } finally {
    child.kill();
  }
  expect((await exit)[0]).toBe(0);
}, 60_000);
