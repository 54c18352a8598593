import { writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { listen } from '../support/listen';
import type { Listening } from '../support/listen';
import { cliScene } from './harness';

const scene = cliScene();
const openapi = join(scene.dataDir, 'openapi.yaml');
writeFileSync(
  openapi,
  `openapi: 3.1.0
paths:
  /orders:
    get:
      security: [{ oauth2: ['orders:read'] }]
      responses: { 200: {} }
  /menus:
    get:
      security: [{ oauth2: ['orders:read'] }]
      responses: { 200: {} }
components: { securitySchemes: { oauth2: { type: oauth2 } } }
`,
);

/** Trusts whatever a token says, and X-Internal. */
function respond(req: IncomingMessage, res: ServerResponse): void {
  const send = (status: number): void => void res.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  if (!/^\/(orders|menus)$/.test(req.url ?? '')) return send(404);
  if (req.method !== 'GET') return send(405);
  if (req.headers['x-internal'] === '1') return send(200);
  const token = /^Bearer (\S+)$/.exec(req.headers.authorization ?? '')?.[1];
  if (token === undefined) return send(401);
  const { scope } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { scope?: unknown };
  send(String(scope).split(' ').includes('orders:read') ? 200 : 403);
}

let server: Listening;
let url = '';
beforeAll(async () => {
  server = await listen(respond);
  ({ url } = server);
});
afterAll(() => server.close());

const contract = (...argv: string[]) => scene.run('contract', '--openapi', openapi, '--issuer-port', '0', ...argv);

/** The outcome of the command at another server. */
async function contractAt(handler: RequestListener, ...argv: string[]): ReturnType<typeof contract> {
  const other = await listen(handler);
  const outcome = await contract('--url', other.url, ...argv);
  await other.close();
  return outcome;
}

describe('tillgate contract', () => {
  it('prints one red per cause, with the request, the response, the line of the document and a curl command', async () => {
    const { exitCode, stdout, stderr } = await contract('--url', url, '--class', 'header,scope', '--depth', 'quick');
    expect(stderr).toMatch(/^The server must trust issuer http:\/\/127\.0\.0\.1:\d+, audience https:\/\/api\.test/);
    expect(stdout.replaceAll(url, 'URL').split('\n')).toEqual([
      'red header: GET /orders stays closed to headers that proxies and frameworks trust',
      '  found: expected nothing, got with X-Internal: 1, without a token: 200',
      `  ${openapi}:4`,
      '  > GET /orders',
      '  < 200 application/json {}',
      "  curl -i --path-as-is -X GET -H 'X-Internal: 1' 'URL/orders'",
      '  and 1 more: GET /menus',
      '',
      '5 cases, 2 red of 1 causes, 2 operations respond otherwise than documented',
      '2 operations tested, 0 public by the document, 0 not tested',
      '',
    ]);
    expect(exitCode).toBe(1);
  });

  it('goes on after connections that the server closes, and keeps what it has found', async () => {
    const { exitCode, stdout, stderr } = await contractAt(
      (req, res) => {
        const isGood = req.headers.authorization?.includes('.') === true;
        if (req.url === '/menus' && isGood) req.socket.destroy();
        else respond(req, res);
      },
      ...['--class', 'header,scope', '--depth', 'quick', '--allow-untested'],
    );
    expect(stdout).toContain('found: expected nothing, got with X-Internal: 1, without a token: 200');
    expect(stdout).toContain(
      'red scope: GET /menus accepts a token with only orders:read\n  status: expected a response',
    );
    expect(stdout).toContain('< socket hang up');
    expect(stderr).not.toContain('is the server running?');
    expect(exitCode).toBe(1);
  });

  it('shows a response on one line of printable text', async () => {
    const { stdout } = await contractAt(
      (req, res) => {
        const isAttack = req.url === '/orders' && req.headers['x-internal'] === '1';
        if (!isAttack || req.headers.authorization !== undefined) return respond(req, res);
        res.end('\u001b[2J\u009b1A\u202e\n\n0 cases, 0 red');
      },
      ...['--class', 'header'],
    );
    const lines = stdout.split('\n');
    expect(lines.filter((line) => line.startsWith('red header: GET /'))).toHaveLength(1);
    expect(lines).toContain('  < 200 \\u001b[2J\\u009b1A\\u202e\\u000a\\u000a0 cases, 0 red');
    // eslint-disable-next-line no-control-regex
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  it('takes what --json has printed as a baseline', async () => {
    const baseline = join(scene.dataDir, 'baseline.json');
    const only = ['--url', url, '--class', 'header', '--depth', 'quick'];
    const first = await contract(...only, '--json');
    expect(first.exitCode).toBe(1);
    expect(JSON.parse(first.stdout)).toMatchObject({
      failures: [{ line: 4 }, { line: 8 }],
      report: { tested: ['GET /orders', 'GET /menus'], public: [], notTested: [] },
    });
    writeFileSync(baseline, first.stdout);
    const second = await contract(...only, '--baseline', baseline);
    expect(second).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^5 cases, 0 red of 0 causes, 2 known by the baseline\n2 operations tested, /m),
    });
  });

  it('rewrites one line of a terminal while it runs, and takes it away before the result', async () => {
    const terminal = cliScene({ isTerminal: true });
    const only = ['--url', url, '--class', 'header', '--depth', 'quick'];
    const { stderr } = await terminal.run('contract', '--openapi', openapi, '--issuer-port', '0', ...only);
    const [, ...lines] = stderr.split('\r\u001b[K');
    expect(lines.slice(0, 4)).toEqual([
      '1 of 5 cases, 0 red',
      '2 of 5 cases, 0 red',
      '3 of 5 cases, 0 red',
      '4 of 5 cases, 1 red',
    ]);
    expect(lines.at(-1)).toBe('');
  });

  it('prints one JSON document on request', async () => {
    const { stdout } = await contract('--json', '--url', url, '--class', 'scope');
    expect(JSON.parse(stdout)).toMatchObject({ url: `${url}/`, openapi, failures: [] });
  });

  const AT = ['--url', 'http://a'];
  it.each([
    ['no URL', [], '--url: expected the URL of the server, for example --url http://127.0.0.1:3000'],
    ['a class that there is not', [...AT, '--class', 'scopes'], 'got "scopes"; did you mean "scope"?'],
    ['a depth that there is not', [...AT, '--depth', 'deep'], '--depth: got "deep", expected quick or full'],
    ['one owner', [...AT, '--owner', 'till-7'], '--owner: got "till-7", expected two client ids'],
    ['no baseline', [...AT, '--baseline', '/none'], '--baseline: /none is not what contract --json has printed'],
    ['no document', [...AT, '--openapi', '/nowhere.yaml'], '/nowhere.yaml: cannot be read'],
    ['a server that is down', ['--url', 'http://127.0.0.1:1', '--wait', '0'], '127.0.0.1:1/: connect ECONNREFUSED'],
    ['no number of seconds', [...AT, '--wait', 'long'], '--wait: got "long", expected seconds'],
    ['a header without a value', [...AT, '--header', 'X'], '--header: expected "Name: value"'],
    ['no configuration', [...AT, '--config', '/nowhere.yaml'], '- /nowhere.yaml: cannot be read'],
  ])('exits with 2 for %s', async (_what, argv, message) => {
    const { exitCode, stderr } = await contract(...argv);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });

  it('takes a configuration file, and flags before it', async () => {
    const config = join(scene.dataDir, 'contract.yaml');
    writeFileSync(
      config,
      `{ url: ${url}, ignore: [/menus], classes: [scope], headers: { x-internal: '0' }, waits: 1 }`,
    );
    expect(await contract('--config', config)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('contractCases(): unknown option "waits"'),
    });
    writeFileSync(config, `{ url: ${url}, ignore: [/menus], classes: [scope], headers: { x-internal: '1' } }`);
    expect((await contract('--config', config)).stdout).toContain(
      'red scope: GET /orders refuses a token without scopes',
    );
    const overridden = await contract('--config', config, '--header', 'X-Internal: 0');
    expect(overridden).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/\n1 operations tested, 0 public by the document, 0 not tested\n$/),
    });
  });

  describe('an operation whose good token gets a 404', () => {
    const lost = join(scene.dataDir, 'lost.yaml');
    const GET = `get: { security: [{ oauth2: ['orders:read'] }] }`;

    /** The outcome where the document has these paths and one that is lost. */
    function run(paths: string, ...argv: string[]): ReturnType<typeof contract> {
      const schemes = '{ securitySchemes: { oauth2: { type: oauth2 } } }';
      writeFileSync(lost, `openapi: 3.1.0\ncomponents: ${schemes}\npaths: { ${paths}/lost: { ${GET} } }\n`);
      return contractAt(
        (req, res) => {
          if (req.url !== '/lost') return respond(req, res);
          res.writeHead(req.headers.authorization?.includes('.') ? 404 : 401).end();
        },
        ...['--openapi', lost, '--class', 'routes', ...argv],
      );
    }

    it('is not tested: exit 2, unless --allow-untested', async () => {
      const { exitCode, stdout, stderr } = await run(`/orders: { ${GET} }, `);
      expect(stdout).toContain('not tested: GET /lost: good tokens got 404; give values that exist in "requests"\n');
      expect(stdout).toMatch(/\n1 operations tested, 0 public by the document, 1 not tested\n$/);
      expect(stderr).toContain('1 operations were not tested: --allow-untested accepts that');
      expect(exitCode).toBe(2);
      expect((await run(`/orders: { ${GET} }, `, '--allow-untested')).exitCode).toBe(0);
    });

    it('is nothing tested when it is the only one: exit 2 in any case', async () => {
      const { exitCode, stderr } = await run('', '--allow-untested');
      expect(stderr).toContain('1 operations were not tested: nothing was tested');
      expect(exitCode).toBe(2);
    });
  });

  it('exits with 2 where no good token is accepted, and says what the issuer should be', async () => {
    const { exitCode, stderr } = await contractAt((_req, res) => void res.writeHead(401).end());
    expect(stderr).toMatch(/Start the server with http:\/\/127\.0\.0\.1:\d+ as its issuer/);
    expect(exitCode).toBe(2);
  });
});
