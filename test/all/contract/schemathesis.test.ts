import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadContract, scopesOf } from '../../../src/app/contract';
import { COMPILED } from '../support/compiled';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';

const run = promisify(execFile);
const PACKAGE = 'schemathesis==4.32.5';
/** Generated requests per operation, in addition to those that follow from the schemas. */
const EXAMPLES = 5;
/** Every run sends the same requests: a change must not fail because of a finding that it did not cause. */
const SEED = 20_261_123;

const hasPython = spawnSync('python3', ['-c', 'import venv, ensurepip']).status === 0;
if (!hasPython)
  console.warn('the suite of schemathesis is skipped: python3 with venv is missing (apt-get install python3-venv)');
const withPython = hasPython ? describe : describe.skip;

let folder: string;
let tillgate: RunningTillgate<DevReport>;
let token: string;

async function command<Result>(...args: readonly string[]): Promise<Result> {
  const { base_url, auth_url } = tillgate.report;
  const urls = { TILLGATE_BASE_URL: base_url, TILLGATE_AUTH_URL: auth_url, TILLGATE_DATA_DIR: join(folder, 'data') };
  const main = join(COMPILED, 'src/cli/main.js');
  const { stdout } = await run(process.execPath, [main, ...args, '--json'], { env: { ...process.env, ...urls } });
  return JSON.parse(stdout) as Result;
}

withPython('schemathesis, with all checks', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tillgate-schemathesis-'));
    tillgate = await startTillgate('dev', {
      TILLGATE_PORT: '0',
      TILLGATE_AUTH_PORT: '0',
      TILLGATE_DATA_DIR: join(folder, 'data'),
      TILLGATE_RATE_LIMIT: 'off',
    });
    const scope = [...scopesOf(loadContract())].join(' ');
    const { client_secret } = await command<{ client_secret: string }>('clients', 'add', 'fuzzer', '--scope', scope);
    ({ access_token: token } = await command<{ access_token: string }>('token', 'fuzzer', '--secret', client_secret));
    await run('python3', ['-m', 'venv', join(folder, 'python')]);
    await run(join(folder, 'python/bin/pip'), ['install', '--quiet', PACKAGE]);
  });

  afterAll(async () => {
    await tillgate?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('finds nothing in the scaffold and the token server', async () => {
    const { base_url, auth_url } = tillgate.report;
    const settings = join(folder, 'schemathesis.toml');
    await writeFile(settings, `[servers.variables]\nbase_url = "${base_url}"\nauth_url = "${auth_url}"\n`);
    const { stdout } = await run(
      join(folder, 'python/bin/schemathesis'),
      [
        ...['--config-file', settings, 'run', `${base_url}/openapi.yaml`, '--header', `Authorization: Bearer ${token}`],
        ...['--checks', 'all', '--continue-on-failure', '--no-color', '--generation-database', 'none'],
        ...['--max-examples', String(EXAMPLES), '--seed', String(SEED), '--workers', '2'],
      ],
      { cwd: folder, maxBuffer: 100_000_000 },
      // It exits with 1 when it finds something: what it found is in its output.
    ).catch((error: { readonly stdout: string }) => error);
    expect(stdout).toMatch(/\n {2}(\d{4,}) generated, \1 passed\n/);
  });
});
