import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cliScene } from './harness';
import type { CliScene, Outcome } from './harness';
import { whileDevRuns } from './while-dev-runs';

const EXPRESS = JSON.stringify(require.resolve('express'));
const [GATE, APP] = ['../../src/index.ts', '../../src/app/index.ts'].map((path) =>
  JSON.stringify(resolve(__dirname, path)),
);

const ROUTE = `app.get('/v1/hello', requireScope('orders:read'), (req, res) => res.json({ from: req.auth.clientId }));`;
const PLAIN = `
  const { authenticate, requireScope } = require(${GATE});
  const makeApp = (gate) => { const app = require(${EXPRESS})(); app.use('/v1', authenticate(gate)); ${ROUTE} return app; };`;

const home = cliScene();

function module(name: string, text: string): string {
  const path = join(home.dataDir, name);
  writeFileSync(path, text);
  return path;
}

/** Runs `dev --app`, calls a path as the demo till once it is ready, and stops. */
async function devWith(
  module: string,
  path: string,
  env: Record<string, string> = {},
): Promise<Outcome & { called?: unknown }> {
  let called: unknown;
  const call = async (run: CliScene['run']): Promise<void> => {
    called = JSON.parse((await run('call', 'GET', path, '--as', 'pos-terminal', '--json')).stdout);
  };
  return { ...(await whileDevRuns(['--app', module], call, env)), called };
}

describe('dev --app', () => {
  const variables = { ...process.env };
  afterEach(() => {
    for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name];
  });

  it.each([
    [
      'a function of the options of createApp',
      'function.cjs',
      `${PLAIN} module.exports = ({ gate }) => makeApp(gate);`,
    ],
    ['an asynchronous createApp', 'named.cjs', `${PLAIN} exports.createApp = async ({ gate }) => makeApp(gate);`],
    [
      'a function that returns what createApp() returns',
      'scaffold.cjs',
      `const { requireScope } = require(${GATE});
       exports.default = (options) => {
         const made = require(${APP}).createApp(options);
         const app = require(${EXPRESS})();
         app.use('/v1/hello', made.gate); ${ROUTE}
         return { ...made, handler: app };
       };`,
    ],
  ])('runs %s with the embedded token server', async (_what, name, text) => {
    const { exitCode, stderr, called } = await devWith(module(name, text), '/v1/hello');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(called).toMatchObject({ status: 200, body: { from: 'pos-terminal' } });
  });

  it('names the documentation page and suggests routes of the app', async () => {
    const text = `const { createApp } = require(${APP}); module.exports = (options) => createApp(options);`;
    const { report } = await whileDevRuns(['--app', module('documented.cjs', text)]);
    expect(report).toMatchObject({ docs_url: `${report.base_url}/docs` });
    const plain = await whileDevRuns([
      '--app',
      module('plain.cjs', `${PLAIN} module.exports = ({ gate }) => makeApp(gate);`),
    ]);
    expect(plain.report).not.toHaveProperty('docs_url');
  });

  it('logs each request once, with the reason of a refusal, also where the app logs nothing', async () => {
    const text = `${PLAIN.replace('orders:read', 'orders:cancel')} module.exports = ({ gate }) => makeApp(gate);`;
    const { stderr, called } = await devWith(module('logs.cjs', text), '/v1/hello?token=x', {
      TILLGATE_LOG_LEVEL: 'info',
    });
    expect(called).toMatchObject({ status: 403 });
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { msg: 'token server request', path: '/connect/token', status: 200, client_id: 'pos-terminal' },
      {
        ...{ level: 'info', msg: 'request', method: 'GET', path: '/v1/hello', status: 403 },
        ...{ client_id: 'pos-terminal', reason: 'insufficient_scope' },
        detail: 'needs orders:cancel, has orders:read orders:write and 6 more',
      },
    ]);
  });

  it('runs an Express app; its authenticate() without options finds the token server in the variables', async () => {
    const path = module(
      'express.cjs',
      `${PLAIN} exports.app = require(${EXPRESS})().use((req, res) => res.json({
      authUrl: process.env.TILLGATE_AUTH_URL, source: process.env.TILLGATE_GENERATIONS }));`,
    );
    const { exitCode, stdout, called } = await devWith(path, '/');
    const { auth_url } = JSON.parse(stdout) as { auth_url: string };
    expect(exitCode).toBe(0);
    expect(called).toMatchObject({ status: 200, body: { authUrl: auth_url, source: `${auth_url}/generations` } });
  });

  it.each([
    ['nothing of the kind', 'nothing.cjs', 'exports.value = 42;', 'its exports are neither'],
    [
      'a function that returns something else',
      'wrong.cjs',
      'module.exports = () => 42;',
      'its function returns neither',
    ],
    [
      'an app that calls listen()',
      'listens.cjs',
      `const app = require(${EXPRESS})(); globalThis.listening = app.listen(0, '127.0.0.1'); module.exports = app;`,
      'it listens by itself; export the app without listen(), which this command does',
    ],
  ])('says what it expects where the module exports %s', async (_what, name, text, message) => {
    const path = module(name, text);
    const { exitCode, stdout, stderr } = await devWith(path, '/');
    (globalThis as { listening?: { close(): void } }).listening?.close();
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(`${path}: expected a module that exports what createApp() of tillgate/app returns`);
    expect(stderr).toContain(message);
  });
});
