import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { round, table } from '../stats';

const ROOT = join(__dirname, '../..');

/** What one installs to check tokens, beside express. */
const PEERS: Readonly<Record<string, readonly string[]>> = {
  'express-oauth2-jwt-bearer': ['express-oauth2-jwt-bearer'],
  'express-jwt + jwks-rsa': ['express-jwt', 'jwks-rsa'],
  'passport-jwt + passport + jwks-rsa': ['passport-jwt', 'passport', 'jwks-rsa'],
  jose: ['jose'],
  'fast-jwt + get-jwks': ['fast-jwt', 'get-jwks'],
};

/** What a production install takes on disk, each in a directory of its own; express is there in all of them. */
export function installSizes(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  try {
    const [{ filename }] = JSON.parse(npm(ROOT, 'pack', '--json', '--pack-destination', folder)) as [
      { filename: string },
    ];
    const wanted: Record<string, readonly string[]> = {
      'express alone': [],
      ...PEERS,
      tillgate: [join(folder, filename)],
    };
    const rows = Object.entries(wanted).map(([name, packages]) => {
      const project = mkdtempSync(join(folder, 'project-'));
      writeFileSync(join(project, 'package.json'), '{ "private": true }');
      npm(project, 'install', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error', 'express@5', ...packages);
      return [name, megabytesOf(join(project, 'node_modules')), packagesIn(project)];
    });
    return table(['production install', 'MB on disk', 'packages'], rows);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function npm(cwd: string, ...args: readonly string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

function megabytesOf(path: string): number {
  return round(Number(execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t')[0]) / 1024);
}

/** Everything in the lock file that npm wrote, without the project itself. */
function packagesIn(project: string): number {
  const lock = JSON.parse(readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, unknown>>;
  };
  return Object.keys(lock.packages).length;
}
