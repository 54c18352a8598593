import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen } from '../support/listen';
import { cliScene, failure, json, success } from './harness';
import type { CliScene, SentRequest } from './harness';

function servers({ url, headers, body }: SentRequest): Response | undefined {
  if (url.endsWith('/connect/token')) {
    return json(200, { access_token: 'aaa.bbb.ccc', scope: new URLSearchParams(body).get('scope') });
  }
  if (headers.get('authorization') !== 'Bearer aaa.bbb.ccc') {
    return json(401, { status: 401, code: 'missing_token' }, { 'www-authenticate': 'Bearer realm="api"' });
  }
  if (body === '{}') return new Response(null, { status: 204, headers: { 'x-request-id': 'id-1', server: 'x' } });
  return json(200, { data: [] }, { 'x-request-id': 'id-1', 'x-frame-options': 'SAMEORIGIN' });
}

function scene(env: Record<string, string> = {}): CliScene {
  return cliScene({ respond: servers, env });
}

const noResponse = (why: string) =>
  `no response from http://127.0.0.1:3000 (${why}); is it running? tillgate dev starts both servers; ` +
  'dev --port, TILLGATE_PORT or TILLGATE_BASE_URL sets its address';

describe('call', () => {
  it('requests a token, calls, and prints status, main headers and body', async () => {
    const { run, sent } = scene();
    const outcome = await run('call', 'get', '/v1/orders', '--as', 'till', '--secret', 's', '--scope', 'orders:read');
    expect(outcome).toEqual(success('200\ncontent-type: application/json\nx-request-id: id-1\n\n{\n  "data": []\n}\n'));
    expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST http://127.0.0.1:4000/connect/token',
      'GET http://127.0.0.1:3000/v1/orders',
    ]);
  });

  it('sends a body as JSON', async () => {
    const { run, sent } = scene({ TILLGATE_BASE_URL: 'https://api.example.com/shop/' });
    const outcome = await run('call', 'POST', '/v1/orders', '--token', 'aaa.bbb.ccc', '--data', '{}');
    expect(outcome).toEqual(success('204\nx-request-id: id-1\n'));
    expect(sent[0]).toMatchObject({ url: 'https://api.example.com/shop/v1/orders', body: '{}' });
    expect(sent[0]?.headers.get('content-type')).toBe('application/json');
  });

  it('sends further headers, which count more than its own', async () => {
    const { run, sent } = scene();
    const headers = ['-H', 'X-Trace: a b', '-H', 'x-empty:', '--header', 'Content-Type: text/plain'];
    const argv = ['call', 'POST', '/v1/orders', '--token', 'aaa.bbb.ccc', ...headers, '--data', 'two espressos'];
    expect((await run(...argv)).exitCode).toBe(0);
    const names = ['x-trace', 'x-empty', 'content-type', 'authorization'];
    expect(names.map((name) => sent[0]?.headers.get(name))).toEqual(['a b', '', 'text/plain', 'Bearer aaa.bbb.ccc']);
    expect(sent[0]?.body).toBe('two espressos');
  });

  it.each(['X-Trace', ': geheim', 'X Y: geheim', 'X: geheim\r\nY: b', 'X: \u{1f512}'])(
    'refuses the header %j',
    async (header) => {
      const { run, sent } = scene();
      const problem = '--header: expected "Name: value", with printable ASCII';
      expect(await run('call', 'GET', '/v1/orders', '-H', header)).toEqual(failure(2, problem));
      expect(sent).toEqual([]);
    },
  );

  it('reads the body from a file or from standard input', async () => {
    const { run, sent, dataDir } = cliScene({ respond: servers, stdin: '{"from":"stdin"}' });
    writeFileSync(join(dataDir, 'order.json'), '{"from":"file"}');
    for (const data of [`@${join(dataDir, 'order.json')}`, '@-'])
      await run('call', 'POST', '/v1/orders', '--data', data);
    expect(sent.map(({ body }) => body)).toEqual(['{"from":"file"}', '{"from":"stdin"}']);
    const { exitCode, stderr } = await run('call', 'POST', '/v1/orders', '--data', '@missing.json');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^tillgate: --data: cannot read missing\.json: ENOENT/);
  });

  it('calls without a token when there is no --as, and exits with 1 when it is refused', async () => {
    const { run, sent } = scene();
    const { exitCode, stdout } = await run('call', 'GET', '/v1/orders', '--json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      status: 401,
      headers: { 'www-authenticate': 'Bearer realm="api"', 'content-type': 'application/json' },
      body: { status: 401, code: 'missing_token' },
    });
    expect(sent[0]?.headers.has('authorization')).toBe(false);
  });
});

describe('a token that no header can carry', () => {
  it.each(['aaa.bbb.ccc\n', 'aaa.bbb\r\nX-Admin: 1', 'aaa.bbb.\u0000', 'aaa.bbb.\u{1f512}'])(
    'is refused before anything is sent, and not printed: %j',
    async (token) => {
      const { run, sent } = scene();
      expect(await run('call', 'GET', '/v1/orders', '--token', token)).toEqual(
        failure(2, '--token: expected printable ASCII without line breaks'),
      );
      expect(sent).toEqual([]);
    },
  );

  it('from the token server is not printed either', async () => {
    const made = cliScene({ respond: () => json(200, { access_token: 'aaa.bbb\n.ccc', scope: 'a' }) });
    const argv = ['call', 'GET', '/v1/orders', '--as', 'till', '--secret', 's', '--scope', 'a'];
    expect(await made.run(...argv)).toEqual(
      failure(1, 'no token for till: POST http://127.0.0.1:4000/connect/token: 200, a response without a bearer token'),
    );
  });
});

describe('a response', () => {
  const MIB = 1024 * 1024;

  function endless(limit = Infinity): { readonly body: ReadableStream<Uint8Array>; readonly sent: () => number } {
    let bytes = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (bytes >= limit) return controller.close();
        bytes += MIB;
        controller.enqueue(new Uint8Array(MIB).fill(0x61));
      },
    });
    return { body, sent: () => bytes };
  }

  it('that does not end is given up after 16 MiB', async () => {
    const { body, sent } = endless();
    const made = cliScene({ respond: () => new Response(body) });
    expect(await made.run('call', 'GET', '/v1/orders')).toEqual(
      failure(1, 'the response from http://127.0.0.1:3000 is larger than 16 MiB'),
    );
    expect(sent()).toBeLessThanOrEqual(18 * MIB);
  });

  it('of exactly 16 MiB is shown', async () => {
    const made = cliScene({ respond: () => new Response(endless(16 * MIB).body) });
    const { exitCode, stdout, stderr } = await made.run('call', 'GET', '/v1/orders');
    expect([exitCode, stdout.length, stderr]).toEqual([0, '200\n\n\n'.length + 16 * MIB, '']);
  });

  it('that does not come says so, with the time that was waited', async () => {
    const made = cliScene({ fetch: () => Promise.reject(new DOMException('aborted', 'TimeoutError')) });
    expect(await made.run('call', 'GET', '/v1/orders')).toEqual(failure(1, noResponse('none within 15 s')));
  });
});

it('a redirect is shown, and not followed: neither a token nor a secret goes to another server', async () => {
  const reached: string[] = [];
  const server = await listen((req, res) => {
    reached.push(`${req.method} ${req.url}`);
    const metadata = { issuer: url, token_endpoint: `${url}/oauth/token` };
    if (req.url?.startsWith('/.well-known/')) return void res.end(JSON.stringify(metadata));
    res.writeHead(307, { location: '/elsewhere' }).end();
  });
  const { url } = server;
  const made = cliScene({ fetch, env: { TILLGATE_AUTH_URL: url, TILLGATE_BASE_URL: url } });

  expect(await made.run('call', 'GET', '/v1/orders', '--token', 'aaa.bbb.ccc')).toEqual(
    success('307 Temporary Redirect\nlocation: /elsewhere\n'),
  );
  const outcome = await made.run('token', 'till', '--secret', 's', '--scope', 'a');
  expect(outcome).toEqual(
    failure(1, `no token for till: POST ${url}/oauth/token: 307, a redirect, which no token request follows`),
  );
  expect(reached).toEqual(['GET /v1/orders', 'GET /.well-known/openid-configuration', 'POST /oauth/token']);
  await server.close();
});
