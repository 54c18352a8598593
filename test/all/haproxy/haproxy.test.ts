import { mkdtemp, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../support/listen';
import type { Listening } from '../../support/listen';
import { requireCommand } from '../setup/packages';
import { freePort } from '../support/free-port';
import { startServer } from '../support/start-server';

interface Haproxy {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts Debian's haproxy before one server, with lines of its backend. */
async function startHaproxy(backend: string): Promise<Haproxy> {
  requireCommand('haproxy', 'apt-get install haproxy');
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-haproxy-'));
  const port = await freePort();
  const limits = 'timeout connect 2s\n  timeout client 20s\n  timeout server 20s';
  const frontend = `frontend api\n  mode http\n  bind 127.0.0.1:${port}\n  default_backend gate`;
  const text = `defaults\n  mode http\n  ${limits}\n${frontend}\nbackend gate\n  retries 2\n  ${backend}\n`;
  await writeFile(join(folder, 'haproxy.cfg'), text);
  return startServer({ command: 'haproxy', args: ['-db', '-q', '-f', join(folder, 'haproxy.cfg')], folder, port });
}

/** What docs/operations.md says about haproxy. */
describe('haproxy before the gate', () => {
  /** Requests that the gate has got, with their Authorization headers. */
  const received: (readonly [method: string | undefined, authorization: string | undefined])[] = [];
  let status = 503;
  let gate: Listening;
  const started: Haproxy[] = [];

  beforeAll(async () => {
    const respond: RequestListener = (req, res) => {
      received.push([req.method, req.headers.authorization]);
      req.resume();
      res.writeHead(status, status === 503 ? { 'Retry-After': '7' } : {}).end();
    };
    gate = await listen(respond);
  });

  beforeEach(() => {
    received.length = 0;
    status = 503;
  });

  afterAll(async () => {
    for (const one of started) await one.stop();
    await gate.close();
  });

  async function haproxy(directive: string, server = `server one 127.0.0.1:${gate.port}`): Promise<Haproxy> {
    const one = await startHaproxy(`${directive}\n  ${server}`);
    started.push(one);
    return one;
  }

  function send({ port }: Haproxy, method: string, headers: Record<string, string> = {}): Promise<[number, unknown]> {
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path: '/v1/orders', headers }, (response) => {
        response.resume();
        resolve([response.statusCode ?? 0, response.headers['retry-after']]);
      });
      sent.on('error', reject).end(method === 'POST' ? '{}' : undefined);
    });
  }

  it.each(['GET', 'POST'])(
    'repeats a %s at once with `retry-on 503`, and does not wait for Retry-After',
    async (method) => {
      const repeating = await haproxy('retry-on 503');
      expect(await send(repeating, method)).toEqual([503, '7']);
      expect(received.map(([one]) => one)).toEqual([method, method, method]);
    },
  );

  it.each(['GET', 'POST'])(
    'hands a 503 for a %s on with `retry-on conn-failure`: the gate got one request',
    async (method) => {
      const advised = await haproxy('retry-on conn-failure');
      expect(await send(advised, method)).toEqual([503, '7']);
      expect(received.map(([one]) => one)).toEqual([method]);
    },
  );

  it('sends a POST to another server with `retry-on conn-failure` where one does not listen', async () => {
    status = 200;
    const servers = `server down 127.0.0.1:${await freePort()}\n  server up 127.0.0.1:${gate.port}`;
    const advised = await haproxy('retry-on conn-failure\n  option redispatch 1', servers);
    for (let count = 0; count < 4; count++) expect(await send(advised, 'POST')).toEqual([200, undefined]);
    expect(received).toHaveLength(4);
  });

  it('passes a token of 12 KB, and refuses one of 16 KB itself', async () => {
    status = 200;
    const plain = await haproxy('retry-on conn-failure');
    const bearer = (length: number): string => `Bearer ${'t'.repeat(length)}`;
    expect(await send(plain, 'GET', { authorization: bearer(12 * 1024) })).toEqual([200, undefined]);
    expect(received).toEqual([['GET', bearer(12 * 1024)]]);
    expect((await send(plain, 'GET', { authorization: bearer(16 * 1024) }))[0]).toBe(400);
    expect(received).toHaveLength(1);
  });
});
