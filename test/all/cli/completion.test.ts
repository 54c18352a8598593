import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../../src/cli/command-table';
import { cliScene } from '../../cli/harness';

const scene = cliScene();

const [bash, fish] = ['bash', 'fish'].map((shell) => spawnSync(shell, ['--version']).status === 0);
if (!bash) console.log('bash is not installed: its completion is not tested');

async function scriptOf(shell: string): Promise<string> {
  const { exitCode, stdout } = await scene.run('completion', shell);
  expect(exitCode).toBe(0);
  const file = join(scene.dataDir, `completion.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

/** A `tillgate` that has two clients, one of them with an id that a shell would run. */
const bin = join(scene.dataDir, 'bin');
mkdirSync(bin);
writeFileSync(
  join(bin, 'tillgate'),
  `#!/bin/sh\n[ "$*" = "clients list --ids" ] && printf '%s\\n' 'kiosk-2' '$(touch ${scene.dataDir}/run)' 'pos-terminal'`,
  { mode: 0o755 },
);
const PATH = `${bin}:${process.env['PATH']}`;

const LINES: readonly [line: string, expected: string][] = [
  ['tillgate cl', 'clients'],
  ['tillgate clients re', 'remove'],
  ['tillgate clients add --d', '--description'],
  ['tillgate dev --log j', 'json'],
  ['tillgate token clients --ex', '--expired'],
  ['tillgate completion f', 'fish'],
  ['tillgate call GET /v1/orders --as till --to', '--token'],
  ['tillgate call GET /v1/orders --hea', '--header'],
  ['tillgate token till --verb', '--verbose'],
  ['tillgate token ki', 'kiosk-2'],
  ['tillgate clients rotate pos', 'pos-terminal'],
  ['tillgate call GET /v1/orders --as pos', 'pos-terminal'],
];

(bash ? describe : describe.skip)('the completion of bash', () => {
  it('completes commands, options and their values', async () => {
    const file = await scriptOf('bash');
    const complete = (line: string): string => {
      const text = `source "$1"; set -- $2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tillgate; echo "\${COMPREPLY[*]}"`;
      return spawnSync('bash', ['-c', text, 'bash', file, line], {
        encoding: 'utf8',
        env: { ...process.env, PATH },
      }).stdout.trim();
    };
    expect(LINES.map(([line]) => [line, complete(line)])).toEqual(LINES);
    expect(existsSync(join(scene.dataDir, 'run'))).toBe(false);
    expect(complete(`tillgate dev --openapi ${file.slice(0, -1)}`)).toBe(file);
    expect(complete(`tillgate dev --scopes ${file.slice(0, -1)}`)).toBe('');
    const names = COMMANDS.map(({ usage }) => usage.replace(/ .*/, ''));
    expect(spawnSync('bash', ['-n', file]).status).toBe(0);
    expect(
      spawnSync(
        'bash',
        ['-c', 'source "$1"; COMP_WORDS=(tillgate ""); COMP_CWORD=1; _tillgate; echo "${COMPREPLY[*]}"', 'bash', file],
        { encoding: 'utf8' },
      ).stdout,
    ).toBe(`${names.join(' ')} --help --version\n`);
  });
});

// Registered where it can run: few machines have fish.
if (fish) {
  it('fish completes commands, options and their values', async () => {
    const file = await scriptOf('fish');
    for (const [line, expected] of LINES) {
      const text = `source ${file}; complete -C ${JSON.stringify(line)}`;
      const { stdout } = spawnSync('fish', ['-c', text], {
        encoding: 'utf8',
        env: { ...process.env, PATH, HOME: scene.dataDir },
      });
      expect(
        stdout
          .trim()
          .split('\n')
          .map((one) => one.split('\t')[0]),
      ).toEqual([expected]);
    }
  });
}
