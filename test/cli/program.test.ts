import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { paint, print } from '../../src/cli/output';
import type { CliIo } from '../../src/cli/command';
import { COMMANDS } from '../../src/cli/command-table';
import { environmentOf, programName } from '../../src/cli/run';
import { cliScene, failure, json, success } from './harness';
import type { SentRequest } from './harness';

const scene = cliScene();

describe('the command line', () => {
  it('lists its commands in groups, and has an example for each', async () => {
    const { exitCode, stdout, stderr } = await scene.run('--help');
    expect([exitCode, stderr]).toEqual([0, '']);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
    const known = ['dev', 'token', 'call', 'explain', 'clients', 'revoke', 'check', 'init'];
    expect(commands).toEqual(expect.arrayContaining(known));
    expect(stdout.match(/^\S.*:$/gm)).toEqual([
      'Options:',
      ...['Servers:', 'Tokens and requests:', 'Clients and generations:', 'Checks and projects:', 'Commands:'],
    ]);
    for (const { usage } of COMMANDS) {
      const name = usage.replace(/ .*/, '');
      expect((await scene.run(name, '--help')).stdout).toContain(`\nExample:\n  tillgate ${name}`);
    }
  });

  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: '1', FORCE_COLOR: '1' }, true, false],
    [{ FORCE_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '0' }, true, false],
    [{ TERM: 'dumb' }, true, false],
  ])('with %j in a terminal (%s) has colors: %s', (env, isTTY, expected) => {
    expect(paint('red', 'a', { write() {}, isTTY }, env)).toBe(expected ? '\x1b[31ma\x1b[39m' : 'a');
  });

  it('lets no text of others set a color', () => {
    let text = '';
    const stdout = { write: (chunk: string) => (text += chunk), isTTY: true };
    print(
      { io: { stdout, env: {} } as unknown as CliIo, json: false, given: {} },
      {},
      'okay\naccepted\n  failed\n\x1b[31mred',
    );
    expect(text).toBe('okay\naccepted\n  failed\n\\u001b[31mred\n');
  });

  it('prints its version', async () => {
    expect(await scene.run('--version')).toEqual(success('0.1.0\n'));
  });

  it.each<[string[], string]>([
    [['tokn'], "unknown command 'tokn'\n(Did you mean token?)"],
    [['clients', 'lst'], "unknown command 'lst'\n(Did you mean list?)"],
    [['token', 'till', '--scop', 'a'], "unknown option '--scop'\n(Did you mean --scope?)"],
    [['token'], "missing required argument 'client'"],
    [['token', 'till', 'extra'], "too many arguments for 'token'. Expected 1 argument but got 2."],
    [['clients', 'add', 'till'], 'give --scope "orders:read orders:write": the scopes that the client may ask for'],
    [['call', 'G-T', '/v1/orders'], 'expected a method such as GET, got "G-T"'],
    [['call', 'GET', 'v1/orders'], 'expected a path such as /v1/orders, got "v1/orders"'],
    [
      ['call', 'POST', '/v1/orders', '--data', '{name}'],
      'expected JSON in --data, for example --data \'{"name":"Espresso"}\'',
    ],
    [['call', 'GET', '/', '--as', 'a', '--token', 'b'], 'give --as or --token, not both'],
    [['token', 'a', '--secret', 'b', '--secret-file', 'c'], 'give --secret or --secret-file, not both'],
  ])('%j is wrong usage', async (argv, message) => {
    expect(await scene.run(...argv)).toEqual(failure(2, message));
  });

  it.each([['dev'], ['token', 'till'], ['call', 'GET', '/'], ['clients', 'list'], ['explain', 'x']])(
    '%s with a wrong configuration reports every problem and ends with 78',
    async (...argv) => {
      const wrong = cliScene({ env: { TILLGATE_PORT: 'x', TILLGATE_ISUER: 'y', TILLGATE_AUTH_URL: 'login' } });

      const { exitCode, stdout, stderr } = await wrong.run(...argv);

      expect({ exitCode, stdout }).toEqual({ exitCode: 78, stdout: '' });
      expect(stderr).toBe(
        [
          'tillgate: wrong configuration:',
          '  - TILLGATE_ISUER: unknown variable; did you mean "TILLGATE_ISSUER"?',
          '  - TILLGATE_PORT: got "x", expected a port number from 0 to 65535; for example TILLGATE_PORT=3000',
          '  - TILLGATE_AUTH_URL: got "login", expected an absolute http://, https:// URL without credentials or query or fragment; for example TILLGATE_AUTH_URL=https://login.example.com',
          '',
        ].join('\n'),
      );
    },
  );

  it('says what to do when the server does not respond', async () => {
    const { exitCode, stderr } = await scene.run('clients', 'list');
    expect(exitCode).toBe(1);
    expect(stderr).toBe(
      'tillgate: no response from http://127.0.0.1:4000 (ECONNREFUSED); is it running? tillgate dev starts both servers; dev --auth-port, TILLGATE_AUTH_PORT or TILLGATE_AUTH_URL sets its address\n',
    );
  });

  it.each<[string[], object]>([
    [['token', 'till', '--scop', 'a'], { error: "unknown option '--scop'\n(Did you mean --scope?)", exit_code: 2 }],
    [['call', 'GET', '/', '--as', 'a', '--token', 'b'], { error: 'give --as or --token, not both', exit_code: 2 }],
  ])('with --json, the error of %j is a JSON document on stderr', async (argv, document) => {
    const { stdout, stderr } = await scene.run(...argv, '--json');
    expect(stdout).toBe('');
    expect(JSON.parse(stderr)).toEqual(document);
  });

  it('with --json, problems of the configuration are a list', async () => {
    const wrong = cliScene({ env: { TILLGATE_PORT: 'x' } });
    const { stderr } = await wrong.run('clients', 'list', '--json');
    const problems = [expect.stringContaining('TILLGATE_PORT: got')];
    expect(JSON.parse(stderr)).toMatchObject({ exit_code: 78, problems });
  });

  it.each([
    ['by npm run in a clone', 'tillgate-repository', 'dev', 'npm run -s tillgate --'],
    ['by npx in a clone', 'tillgate-repository', 'npx', 'npx @tillgate/cli'],
    ['by npm run in a project of the user', 'shop', 'dev', 'npx @tillgate/cli'],
    ['by npx in a project of the user', 'shop', 'npx', 'npx @tillgate/cli'],
    ['by itself', undefined, undefined, 'npx @tillgate/cli'],
  ])('names itself in hints by the command that works when it was started %s', (_how, project, event, name) => {
    const env = project === undefined ? {} : { npm_package_name: project, npm_lifecycle_event: event };
    expect(programName(env)).toBe(name);
  });
});

describe('the variables of a command', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'tillgate-cli-'));
  writeFileSync(join(cwd, '.env'), 'TILLGATE_PORT=1\nTILLGATE_AUTH_PORT=1\nTILLGATE_HOST=h');
  afterAll(() => rmSync(cwd, { recursive: true }));

  it('are its options, then the environment, then .env', () => {
    const env = { TILLGATE_PORT: '3', TILLGATE_AUTH_PORT: '3' };
    const expected = { TILLGATE_PORT: '4', TILLGATE_AUTH_PORT: '3', TILLGATE_HOST: 'h' };
    expect(environmentOf({ cwd, env }, { port: '4' })).toEqual(expected);
  });

  it.each([
    ['UTF-16 with the low byte first, as PowerShell has it', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['UTF-16 with the high byte first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
    ['UTF-8 with a byte order mark', (text: string) => Buffer.from(`\ufeff${text}`)],
  ])('are read from an .env in %s', (_encoding, encode) => {
    const folder = mkdtempSync(join(tmpdir(), 'tillgate-env-'));
    writeFileSync(join(folder, '.env'), encode('TILLGATE_PORT=7\nTILLGATE_HOST=h\n'));
    expect(environmentOf({ cwd: folder, env: {} }, {})).toEqual({ TILLGATE_PORT: '7', TILLGATE_HOST: 'h' });
    rmSync(folder, { recursive: true });
  });

  it('are in no file in production', () => {
    const env = { NODE_ENV: 'production' };
    expect(environmentOf({ cwd, env }, {})).toEqual(env);
  });
});

describe('untrusted text on the terminal', () => {
  /** Clears the screen, moves the cursor, reverses the text direction, breaks the line. */
  const HOSTILE = 'till\u001b[2J\u009b1A\u202e\nroot';
  const SHOWN = 'till\\u001b[2J\\u009b1A\\u202e\\u000aroot';
  const CLIENT = { client_id: HOSTILE, description: HOSTILE, scope: 'a', disabled: false, generation: 1 };

  function servers({ method, url }: SentRequest): Response {
    const { pathname } = new URL(url);
    if (pathname === '/v1/text') return new Response(`${HOSTILE}\n`, { headers: { 'content-type': 'text/plain' } });
    if (pathname === '/v1/json') return json(200, { name: HOSTILE });
    if (pathname === '/clients/refused') return json(400, { code: 'no', detail: HOSTILE });
    if (pathname === '/clients' && method === 'GET') return json(200, { clients: [CLIENT] });
    return json(201, { ...CLIENT, client_secret: 's' });
  }

  const scene = () => cliScene({ respond: servers });
  it.each([
    ['client ids and Descriptions', ['clients', 'list'], SHOWN],
    ['the id of a new client', ['clients', 'add', 'till', '--scope', 'a'], `registered ${SHOWN}`],
    ['a response body of text', ['call', 'GET', '/v1/text'], 'till\\u001b[2J\\u009b1A\\u202e\nroot'],
    ['a response body of JSON', ['call', 'GET', '/v1/json'], '"name": "till\\u001b[2J\\u009b1A\\u202e\\nroot"'],
    ['an error of a server', ['clients', 'describe', 'refused', 'x'], 'till\\u001b[2J\\u009b1A\\u202e'],
  ])('is escaped: %s', async (_what, argv, shown) => {
    const { stdout, stderr } = await scene().run(...argv);
    expect(stdout + stderr).toContain(shown);
    // eslint-disable-next-line no-control-regex
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  it('keeps its meaning in JSON', async () => {
    const { stdout } = await scene().run('clients', 'list', '--json');
    expect(stdout).not.toContain('\u202e');
    expect(JSON.parse(stdout)).toEqual([CLIENT]);
  });
});
