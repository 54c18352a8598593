import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const OBSERVER = join(__dirname, '../../../src/cli/static/observer.cjs');
const ASK = `process.stdout.write(String(require('node:diagnostics_channel').hasSubscribers('http.server.request.start')))`;

/** What a process prints that has the observer preloaded and these variables. */
async function printedBy(script: string, env: Record<string, string>): Promise<string> {
  const args = ['--require', OBSERVER, '-e', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return stdout;
}

it.each([
  ['http://127.0.0.1:4000', true],
  ['http://127.0.0.9:4000', true],
  ['http://localhost:4000', true],
  ['http://[::1]:4000', true],
  ['https://127.0.0.1:4000', false],
  ['http://127.0.0.1.evil.example:4000', false],
  ['http://localhost.evil.example:4000', false],
  ['http://127.0.0.1@evil.example:4000', false],
  ['http://0.0.0.0:4000', false],
  ['http://login.example.com', false],
  ['127.0.0.1:4000', false],
  ['', false],
])('a console at %j is reported to: %s', async (url, expected) => {
  expect(await printedBy(ASK, { CONSOLE_OF_TILLGATE_DEV: url })).toBe(String(expected));
});

it('the authorization server of an app gets no report, also where a process inherits the observer', async () => {
  const nested = `require('node:child_process').spawnSync(process.execPath, ['-e', ${JSON.stringify(ASK)}], { stdio: 'inherit' }); ${ASK}`;
  const env = { TILLGATE_AUTH_URL: 'http://127.0.0.1:4000', NODE_OPTIONS: `--require ${JSON.stringify(OBSERVER)}` };
  expect(await printedBy(nested, env)).toBe('falsefalse');
});

it('a report is not reported: an app that is its own console gets one for each request', async () => {
  const script = `
    const { createServer, get } = require('node:http');
    const requests = [];
    let started = 0;
    require('node:diagnostics_channel').subscribe('http.client.request.start', () => started++);
    const server = createServer((req, res) => {
      requests.push(req.method + ' ' + req.url);
      // A report of this one would start before.
      res.once('close', () => setImmediate(() => req.method === 'POST' && end()));
      res.end();
    });
    server.listen(Number(process.env.PORT), '127.0.0.1', () => get({ port: server.address().port, path: '/v1/orders', agent: false }));
    const end = () => { console.log(JSON.stringify({ requests, started })); process.exit(); };
  `;
  const port = String(20_000 + (process.pid % 10_000));
  const env = { PORT: port, CONSOLE_OF_TILLGATE_DEV: `http://127.0.0.1:${port}` };
  expect(JSON.parse(await printedBy(script, env))).toEqual({
    requests: ['GET /v1/orders', 'POST /console/api/requests'],
    started: 2,
  });
});
