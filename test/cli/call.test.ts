import { cliScene, json } from './harness';
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

const scenes: CliScene[] = [];

function scene(env: Record<string, string> = {}): CliScene {
  const made = cliScene({ respond: servers, env });
  scenes.push(made);
  return made;
}

afterAll(() => scenes.forEach((each) => each.close()));

describe('call', () => {
  it('requests a token, calls, and prints status, main headers and body', async () => {
    const { run, sent } = scene();

    const outcome = await run('call', 'get', '/v1/orders', '--as', 'till', '--secret', 's', '--scope', 'orders:read');

    expect(outcome).toEqual({
      exitCode: 0,
      stderr: '',
      stdout: '200\ncontent-type: application/json\nx-request-id: id-1\n\n{\n  "data": []\n}\n',
    });
    expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST http://127.0.0.1:4000/connect/token',
      'GET http://127.0.0.1:3000/v1/orders',
    ]);
  });

  it('sends a body as JSON', async () => {
    const { run, sent } = scene({ TILLGATE_BASE_URL: 'https://api.example.com/shop/' });

    const outcome = await run('call', 'POST', '/v1/orders', '--token', 'aaa.bbb.ccc', '--data', '{}');

    expect(outcome).toEqual({ exitCode: 0, stderr: '', stdout: '204\nx-request-id: id-1\n' });
    expect(sent[0]).toMatchObject({ url: 'https://api.example.com/shop/v1/orders', body: '{}' });
    expect(sent[0]?.headers.get('content-type')).toBe('application/json');
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
