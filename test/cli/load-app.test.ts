import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { Gate } from '../../src/gate';
import { rememberEnvironment } from '../support/environment';
import { cliScene } from './harness';
import type { CliScene, Outcome } from './harness';
import { whileDevRuns } from './while-dev-runs';

const scene = cliScene();

const EXPRESS = JSON.stringify(require.resolve('express'));
const GATE = JSON.stringify(resolve(__dirname, '../../src/gate/index.ts'));
/** What `authenticate()` and `requireScope()` return, as an audit sees it. */
const KIT = `
  const pass = (req, res, next) => next();
  const gate = Object.assign(pass.bind(), { optional: false, ready() {} });
  const requireScope = (...allOf) => Object.assign(pass.bind(), { [Symbol.for('tillgate.guard')]: { allOf } });
`;
const ROUTES = `
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope('orders:read'), (req, res) => res.json([]));
`;
const COMMONJS = `const app = require(${EXPRESS})();${KIT}${ROUTES}`;

/** Writes a file next to the scene's data and returns its path. */
function file(name: string, text: string): string {
  const path = join(scene.dataDir, name);
  writeFileSync(path, text);
  return path;
}

function document(scope: string): string {
  return `
openapi: 3.1.0
paths:
  /v1/orders:
    get:
      security: [{ oauth2: [${scope}] }]
components:
  securitySchemes:
    oauth2: { type: oauth2, flows: { clientCredentials: { tokenUrl: /t, scopes: { ${scope}: x } } } }
`;
}

const app = file('app.cjs', `${COMMONJS} module.exports = app;`);
const agreeing = file('agreeing.yaml', document('orders:read'));
const differing = file('differing.yaml', document('orders:see'));

describe('routes --app', () => {
  it('lists the routes of an app with their guards', async () => {
    const open = file(
      'open.cjs',
      `${COMMONJS} app.get('/', pass).use('/sub', require(${EXPRESS})()); exports.api = app;`,
    );
    expect(await scene.run('routes', '--app', open)).toEqual({
      exitCode: 0,
      stderr: '',
      stdout: [
        'METHOD  PATH        REQUIRES',
        'GET     /v1/orders  orders:read',
        'GET     /           (no guard) (no gate)',
        '*       /sub        (cannot be read)',
        '',
      ].join('\n'),
    });
  });

  it.each([
    ['module.exports', 'a.cjs', `${COMMONJS} module.exports = app;`],
    ['a name of CommonJS', 'b.cjs', `${COMMONJS} exports.app = app;`],
    ['what createApp() makes', 'd.cjs', `exports.createApp = ({ gate: given } = {}) => { ${COMMONJS} return app; };`],
    ['the default of a transpiled module', 'c.cjs', `${COMMONJS} exports.__esModule = true; exports.default = app;`],
  ])('finds an app that is exported as %s', async (_what, name, text) => {
    const { exitCode, stdout } = await scene.run('routes', '--json', '--app', file(name, text));
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      { method: 'GET', path: '/v1/orders', requires: [['orders:read']], gate: 'strict' },
    ]);
  });
});

describe('a guard that requires more than scopes', () => {
  const path = file(
    'claims.cjs',
    `${COMMONJS}
    const guard = (requirement) => Object.assign(pass.bind(), { [Symbol.for('tillgate.guard')]: requirement });
    app.post('/v1/refunds', requireScope('orders:write'), guard({ claim: 'store' }), pass);
    app.get('/v1/me', guard({}), pass);
    module.exports = app;`,
  );

  it('is listed with it', async () => {
    const { stdout } = await scene.run('routes', '--app', path);
    expect(stdout).toContain('POST    /v1/refunds  orders:write, claim store');
    expect(stdout).toContain('GET     /v1/me       (any token)');
  });

  it('has them as a member in JSON', async () => {
    const { stdout } = await scene.run('routes', '--json', '--app', path);
    expect(JSON.parse(stdout)).toContainEqual({
      method: 'POST',
      path: '/v1/refunds',
      requires: [['orders:write']],
      further: ['claim store'],
      gate: 'strict',
    });
  });
});

describe('a module that fails', () => {
  const line = 'const port = start(); function start() { throw new Error("no port"); }';

  it.each([
    ['thrown.cjs', `'use strict';\n${line}`, 'no port', ':2\n' + line + '\n' + ' '.repeat(line.indexOf('new')) + '^\n'],
    [
      'made.cjs',
      `exports.createApp = () => {\n  return missing;\n};`,
      'missing is not defined',
      ':2\n  return missing;\n  ^\n',
    ],
  ])('is shown with file, line and code: %s', async (name, text, message, frame) => {
    const path = file(name, text);
    const { exitCode, stderr } = await scene.run('routes', '--app', path);
    expect([exitCode, stderr]).toEqual([2, `tillgate: ${path}: cannot be loaded: ${message}\n\n${path}${frame}`]);
  });

  it('is shown at its own line where a function of this package throws', async () => {
    const path = file('option.cjs', `require(${GATE}).requireScope();`);
    const { stderr } = await scene.run('routes', '--app', path);
    expect(stderr).toContain(`\n\n${path}:1\n`);
  });
});

it('routes --app needs no variables, also where the app reads them', async () => {
  const text = `const app = require(${EXPRESS})(); const { authenticate, requireScope } = require(${GATE});
    app.get('/v1/tills', (exports.gate = authenticate()), requireScope('tills:read'), (req, res) => res.json([])); exports.app = app;`;
  const path = file('variables.cjs', text);
  const { exitCode, stdout, stderr } = await scene.run('routes', '--app', path);
  // It waits for its issuer, which the process of the command does not.
  await (createRequire(path)(path) as { readonly gate: Gate }).gate.close();
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 0,
    stdout: 'METHOD  PATH       REQUIRES\nGET     /v1/tills  tills:read\n',
    stderr: '',
  });
});

describe('routes --check --app', () => {
  it('exits with 0 without findings', async () => {
    expect(await scene.run('routes', '--check', '--app', app, '--openapi', agreeing)).toEqual({
      exitCode: 0,
      stderr: '',
      stdout: `1 routes agree with ${agreeing}\n`,
    });
  });

  it('exits with 1 and a line for each finding: got, expected, what to do', async () => {
    const { exitCode, stdout } = await scene.run('routes', '--check', '--app', app, '--openapi', differing);
    expect({ exitCode, lines: stdout.split('\n') }).toEqual({
      exitCode: 1,
      lines: [
        'GET /v1/orders: the app requires orders:read, differing.yaml says orders:see; make them equal',
        'scope orders:read: missing in components.securitySchemes of differing.yaml, so that no client may have it; declare it there with a description',
        'scope orders:see: declared in components.securitySchemes of differing.yaml, but the app does not require it; require it, or remove it',
        '',
      ],
    });
  });

  it('prints one JSON document on request', async () => {
    const { exitCode, stdout } = await scene.run('routes', '--check', '--json', '--app', app, '--openapi', differing);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      routes: 1,
      problems: [expect.stringContaining('GET /v1/orders: '), {}, {}].map((one) => one as never),
      findings: [
        { kind: 'wrong-requirement', method: 'GET', path: '/v1/orders' },
        { kind: 'undeclared-scope' },
        { kind: 'unused-scope' },
      ],
    });
  });

  it.each([
    [
      'a document that does not exist',
      ['--app', app, '--openapi', 'missing.yaml'],
      78,
      /missing\.yaml: cannot be read: ENOENT/,
    ],
    ['not an OpenAPI document', ['--app', app, '--openapi', app], 78, /expected an OpenAPI 3 document|cannot be read/],
    ['a module that is not there', ['--app', 'missing.js'], 2, /missing\.js: cannot be loaded: Cannot find module/],
    [
      'a module that throws',
      ['--app', file('throws.cjs', 'throw new Error("no database")')],
      2,
      /cannot be loaded: no database/,
    ],
    [
      'a module without an app',
      ['--app', file('factory.cjs', 'exports.createApp = () => {};')],
      2,
      /factory\.cjs: expected a module that exports one Express app, got 0 apps in its exports \(createApp\); export the app itself/,
    ],
    [
      'a module with two',
      ['--app', file('two.cjs', `exports.a = require(${EXPRESS})(); exports.b = require(${EXPRESS})();`)],
      2,
      /got 2 apps in its exports \(a, b\)/,
    ],
    [
      'an app whose configuration is wrong',
      [
        '--app',
        file(
          'unset.cjs',
          'throw Object.assign(new Error(), { name: "ConfigurationError", problems: ["TILLGATE_PORT: no"] })',
        ),
      ],
      78,
      /TILLGATE_PORT: no/,
    ],
  ])('refuses %s', async (_what, argv, exitCode, message) => {
    const outcome = await scene.run('routes', '--check', ...argv);
    expect(outcome).toEqual({ exitCode, stdout: '', stderr: expect.stringMatching(message) });
  });
});

describe('routes', () => {
  it('of the scaffold can be compared with another document', async () => {
    const { exitCode, stdout } = await scene.run('routes', '--check', '--openapi', agreeing);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('GET /v1/items: the scaffold has it, agreeing.yaml does not;');
    expect(stdout).not.toContain('GET /v1/orders: the scaffold');
  });

  it('of the scaffold are not compared where no document is', async () => {
    expect(await scene.run('routes', '--check', '--openapi', 'absent.yaml')).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^tillgate: absent\.yaml does not exist here.*--app \.\/app\.js --openapi openapi\.yaml\n$/,
      ),
    });
  });

  it('refuse a document with nothing to check', async () => {
    expect(await scene.run('routes', '--openapi', agreeing)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'tillgate: --openapi names what to check against: give --check too\n',
    });
  });
});

describe('an app of a module, listening', () => {
  const EXPRESS = JSON.stringify(require.resolve('express'));
  const [GATE, APP] = ['../../src/gate/index.ts', '../../src/app/index.ts'].map((path) =>
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
    afterEach(rememberEnvironment());

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
      expect(report).toMatchObject({ docs_url: `${report.base_url}/docs/` });
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
      const shared = globalThis as { listening?: { close(): void } };
      shared.listening?.close();
      delete shared.listening;
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
      expect(stderr).toContain(`${path}: expected a module that exports what createApp() of @tillgate/app returns`);
      expect(stderr).toContain(message);
    });
  });
});
