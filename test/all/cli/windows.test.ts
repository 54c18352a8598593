import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(__dirname, '../../..');
/** Makes the modules that are loaded after it believe that they run on Windows. */
const STUB = "Object.defineProperty(process, 'platform', { value: 'win32' });";
/** Takes the place of cmd.exe, and writes down what it was given. */
const COMSPEC = '#!/bin/sh\nprintf "%s\\n" "$@" > "$GIVEN"\nexit "$STATUS"\n';

let folder: string;
const path = (name: string): string => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tillgate-windows-'));
  writeFileSync(path('stub.cjs'), STUB);
  writeFileSync(path('comspec'), COMSPEC, { mode: 0o755 });
  // What npm installs there: no npx.exe.
  writeFileSync(path('npx.CMD'), '', { mode: 0o755 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Runs `tillgate dev -- <command>` for an authorization server of one's own; returns its exit code and stderr.
 *
 * @param exitCode - that of cmd.exe
 */
function dev(exitCode: number, ...command: string[]): { readonly status: number; readonly stderr: string } {
  const sources = ['--conditions=source', '-r', join(ROOT, 'scripts/run-sources.cjs'), '-r', path('stub.cjs')];
  const { NODE_OPTIONS: _options, ...env } = process.env;
  try {
    execFileSync(process.execPath, [...sources, join(ROOT, 'src/cli/main.ts'), 'dev', '--', ...command], {
      stdio: 'pipe',
      encoding: 'utf8',
      env: {
        ...env,
        TILLGATE_AUTH_URL: 'https://login.test',
        PATH: folder,
        PATHEXT: '.EXE;.CMD',
        comspec: path('comspec'),
        GIVEN: path('given'),
        STATUS: String(exitCode),
      },
    });
    return { status: 0, stderr: '' };
  } catch (error) {
    return error as { status: number; stderr: string };
  }
}

describe('tillgate dev on Windows', () => {
  it('starts npx by cmd.exe, each argument as it was given, and ends with its exit code', () => {
    expect(dev(7, 'npx', 'tsx', 'watch', 'src/my app.ts')).toMatchObject({
      status: 7,
      stderr: 'tillgate: npx ended with exit code 7, and dev with it\n',
    });
    expect(readFileSync(path('given'), 'utf8').trimEnd().split('\n')).toEqual([
      ...['/d', '/s', '/c'],
      '"npx ^"tsx^" ^"watch^" ^"src/my^ app.ts^""',
    ]);
  });

  it('says which command does not exist', () => {
    // cmd.exe ends with 1.
    expect(dev(1, 'no-such-command')).toMatchObject({
      status: 2,
      stderr: 'tillgate: cannot start no-such-command: spawn no-such-command ENOENT\n',
    });
  });
});
