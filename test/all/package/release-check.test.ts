import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SCRIPT = join(__dirname, '../../../scripts/release-check.mjs');
const folder = mkdtempSync(join(tmpdir(), 'tillgate-release-'));
afterAll(() => rmSync(folder, { recursive: true }));

function git(...args: string[]): void {
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: folder });
}

/** Commits a state of the repository. */
function commit(version: string, members: readonly string[], variables: readonly string[] = ['TILLGATE_PORT']): void {
  mkdirSync(join(folder, 'api'), { recursive: true });
  mkdirSync(join(folder, 'docs'), { recursive: true });
  const files = {
    'package.json': JSON.stringify({ version }),
    'CHANGELOG.md': `# Changelog\n\n## ${version}\n`,
    'api/tillgate.api.md': `## Report\n\n\`\`\`ts\n// @public\nexport interface Gate {\n${members.join('\n')}\n}\n\`\`\`\n`,
    'docs/configuration.md': variables.map((name) => `| \`${name}\` |\n`).join(''),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  git('add', '-A');
  git('commit', '-qm', version, '--allow-empty');
}

function check(): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT], { cwd: folder, encoding: 'utf8' });
  return { status, stdout, stderr };
}

it('says whether a version is high enough for what changed since the last tag', () => {
  git('init', '-q', '-b', 'main');
  commit('0.1.0', ['    ready(): void;', '    status(): object;']);
  expect(check()).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('the first release may have any version'),
  });
  git('tag', 'v0.1.0');

  commit('0.1.1', ['    ready(): void;', '    status(): object;']);
  expect(check()).toMatchObject({ status: 0, stdout: '0.1.1 fits: 0 removed or changed, 0 added since v0.1.0\n' });

  commit('0.1.1', ['    ready(): void;', '    status(): object;', '    close(): void;']);
  expect(check()).toEqual({
    status: 1,
    stdout: 'added:\n  api/tillgate.api.md: close(): void;\n\n',
    stderr: 'package.json has 0.1.1, and what changed since v0.1.0 needs at least 0.2.0\n',
  });

  commit('1.0.0', ['    ready(): void;', '    status(): object;']);
  git('tag', 'v1.0.0');
  commit('1.1.0', ['    ready(): Promise<void>;', '    status(): object;']);
  expect(check()).toMatchObject({ status: 1, stderr: expect.stringContaining('needs at least 2.0.0') });

  commit('1.9.0', ['    ready(): void;', '    status(): object;'], ['TILLGATE_LISTEN']);
  expect(check()).toMatchObject({
    status: 1,
    stdout: expect.stringContaining('docs/configuration.md: `TILLGATE_PORT`'),
  });

  commit('2.0.0', ['    ready(): void;', '    status(): object;'], ['TILLGATE_LISTEN']);
  expect(check().status).toBe(0);
  writeFileSync(join(folder, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n');
  expect(check()).toMatchObject({ status: 1, stderr: 'CHANGELOG.md has no heading "## 2.0.0"\n' });
});
