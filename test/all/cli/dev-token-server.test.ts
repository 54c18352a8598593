import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { cliScene } from '../../cli/harness';
import { IDLE, whileDevRuns } from '../../cli/while-dev-runs';

const SCAFFOLD_DOCUMENT = join(__dirname, '../../../openapi.yaml');
const files = cliScene();

function document(name: string, text: string): string {
  const path = join(files.dataDir, name);
  writeFileSync(path, text);
  return path;
}

describe('dev --token-server', () => {
  it('starts the token server alone, whose clients may have any scope', async () => {
    const { exitCode, report } = await whileDevRuns(['--token-server'], async (run, { auth_url }) => {
      expect(await run('clients', 'add', 'till-9', '--scope', 'bogus:thing')).toMatchObject({ exitCode: 0 });
      expect((await run('token', 'till-9')).stdout).toMatch(/^eyJ/);
      expect((await fetch(`${auth_url}/connect/token`)).status).toBe(405);
    });
    expect(exitCode).toBe(0);
    expect(report).toMatchObject({ audience: expect.any(String), clients: [{}, {}] });
    expect(report).not.toHaveProperty('base_url');
  });

  it('takes the scopes of --scopes, which the demo clients get', async () => {
    const { report } = await whileDevRuns(['--token-server', '--scopes', 'a:read  a:write'], async (run) => {
      expect(await run('clients', 'add', 'till-9', '--scope', 'a:write')).toMatchObject({ exitCode: 0 });
      expect((await run('clients', 'add', 'till-8', '--scope', 'a:wrote')).stderr).toContain('did you mean "a:write"');
    });
    expect(report.clients.map(({ client_id, scope }) => `${client_id}: ${scope}`)).toEqual([
      'pos-terminal: a:read a:write',
      'kiosk: a:read',
    ]);
  });

  it('takes the scopes of an OpenAPI document: those that it declares, and those that its operations require', async () => {
    const path = document(
      'openapi.yaml',
      `openapi: 3.0.3
paths: { /things: { get: { security: [{ oauth: ['bogus:thing'] }] } } }
components: { securitySchemes: { oauth: { type: oauth2, flows: { clientCredentials: { scopes: { 'declared': '' } } } } } }`,
    );
    const { report } = await whileDevRuns(['--token-server', '--openapi', path], async (run) => {
      expect(await run('clients', 'add', 'till-9', '--scope', 'bogus:thing declared')).toMatchObject({ exitCode: 0 });
    });
    expect(report.clients).toMatchObject([{ client_id: 'pos-terminal', scope: 'bogus:thing declared' }]);
  });

  it('runs with the variables of an API that trusts it', async () => {
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}`;
    const { exitCode, report } = await whileDevRuns(['--token-server'], undefined, {
      TILLGATE_AUTH_PORT: port,
      TILLGATE_AUTH_URL: url,
      TILLGATE_GENERATIONS: `${url}/generations`,
    });
    expect({ exitCode, url: report.auth_url }).toEqual({ exitCode: 0, url });
  });

  it.each<[string, string[], Record<string, string>, number, string]>([
    [
      'the variables name another token server',
      [],
      { TILLGATE_AUTH_URL: 'https://login.test' },
      78,
      'TILLGATE_AUTH_URL: got "https://login.test", but --token-server starts one at http://127.0.0.1:',
    ],
    ['a scope is wrong', ['--scopes', 'a "b"'], {}, 2, 'expected --scopes "orders:read orders:write", got "\\"b\\""'],
    ['there is no scope', ['--scopes', ' '], {}, 2, 'expected --scopes'],
    ['two lists are given', ['--scopes', 'a', '--openapi', 'b'], {}, 2, 'give --scopes or --openapi, not both'],
    ['the document is missing', ['--openapi', 'missing.yaml'], {}, 78, 'missing.yaml: cannot be read'],
  ])('does not start where %s', async (_what, argv, env, exitCode, message) => {
    const outcome = await whileDevRuns(['--token-server', ...argv], undefined, env);
    expect(outcome).toMatchObject({ exitCode, stdout: '' });
    expect((JSON.parse(outcome.stderr) as { error: string }).error).toContain(message);
  });

  it('does not start where the document names no scopes', async () => {
    const path = document('none.yaml', 'openapi: 3.1.0\npaths: {}\n');
    const { exitCode, stderr } = await whileDevRuns(['--token-server', '--openapi', path]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('names no scopes') });
  });
});

it('dev takes --scopes and --openapi too', async () => {
  await whileDevRuns(['--scopes', 'bogus:thing', ...IDLE], async (run) => {
    expect(await run('clients', 'add', 'till-9', '--scope', 'bogus:thing')).toMatchObject({ exitCode: 0 });
  });
  await whileDevRuns(['--openapi', SCAFFOLD_DOCUMENT, ...IDLE], async (run) => {
    expect((await run('clients', 'add', 'till-9', '--scope', 'bogus:thing')).stderr).toContain('Unknown scope');
  });
});
