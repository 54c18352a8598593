import { createServer, get, Agent } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import request from 'supertest';
import { addGauges } from '../../src/gate/core/telemetry';
import { startServer } from '../../src/app/serve';
import type { RunningServer } from '../../src/app/serve';
import { startApi } from '../../src/app';
import type { Readiness } from '../../src/app';
import { createAdminApp, createMetrics } from '../../src/app/admin';
import { readSettings } from '../../src/gate/env/settings';
import { createTestIssuer, expectProblem } from '../../src/testing';

const HOST = '127.0.0.1';

function start(handler: RequestListener, drainDeadlineMs?: number): Promise<RunningServer> {
  return startServer(handler, { host: HOST, port: 0, ...(drainDeadlineMs !== undefined && { drainDeadlineMs }) });
}

/** An idle connection after one response. */
async function idleConnection(port: number): Promise<Socket> {
  const socket = connect(port, HOST);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [response] = (await once(socket, 'data')) as [Buffer];
  expect(response.toString()).toContain('HTTP/1.1 200 OK');
  return socket;
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of response) body += String(chunk);
  return body;
}

/** A handler that responds when the test calls `respond()`. */
function heldHandler(): { handler: RequestListener; arrived: Promise<void>; respond: (body: string) => void } {
  const responses: ServerResponse[] = [];
  let arrive: () => void = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  return {
    arrived,
    respond: (body) => responses.shift()?.end(body),
    handler(_req, res) {
      responses.push(res);
      arrive();
    },
  };
}

describe('startServer', () => {
  it('listens on a free port, and returns its URL', async () => {
    const server = await start((_req, res) => res.end('hello'));

    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    expect(await (await fetch(server.url)).text()).toBe('hello');
    await server.close();
  });

  it('closes immediately when all connections are idle', async () => {
    const server = await start((_req, res) => res.end('hello'));
    const sockets = await Promise.all([1, 2, 3].map(() => idleConnection(server.port)));
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close')));

    const startedMs = performance.now();
    await server.close();
    await closed;

    expect(performance.now() - startedMs).toBeLessThan(500);
  });

  it('lets a request in progress finish and tells its connection to close', async () => {
    const { handler, arrived, respond } = heldHandler();
    const server = await start(handler);
    const agent = new Agent({ keepAlive: true });
    const response = new Promise<IncomingMessage>((resolve) => get(server.url, { agent }, resolve));
    await arrived;

    const closed = server.close();
    respond('done');

    const { headers, statusCode } = await response;
    expect({ status: statusCode, connection: headers.connection }).toEqual({ status: 200, connection: 'close' });
    expect(await bodyOf(await response)).toBe('done');
    await closed;
    agent.destroy();
  });

  it('closes a connection whose response began before the drain', async () => {
    let end: () => void = () => {};
    const server = await start((_req, res) => {
      res.write('first');
      end = () => res.end('last');
    });
    const agent = new Agent({ keepAlive: true });
    const response = await new Promise<IncomingMessage>((resolve) => get(server.url, { agent }, resolve));

    const startedMs = performance.now();
    const closed = server.close();
    end();

    expect(await bodyOf(response)).toBe('firstlast');
    await closed;
    expect(performance.now() - startedMs).toBeLessThan(500);
    agent.destroy();
  });

  it('resets no connection that the operating system has accepted', async () => {
    const server = await start((_req, res) => res.end('hello'));
    const sent: Promise<string>[] = [];
    const send = (): Promise<string> =>
      new Promise((resolve) => {
        const req = get({ host: HOST, port: server.port, agent: false }, (res) =>
          resolve(String(res.resume().statusCode)),
        );
        req.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
      });
    // One connection a turn, from before the end of the grace until after it.
    let isOpen = true;
    const sending = (async () => {
      while (isOpen && sent.length < 1_500) {
        sent.push(send());
        await new Promise(setImmediate);
      }
    })();
    await server.close();
    isOpen = false;
    await sending;
    const outcomes = new Set(await Promise.all(sent));
    outcomes.delete('ECONNREFUSED');
    expect([...outcomes]).toEqual(['200']);
  });

  it('cuts what is still open at the deadline', async () => {
    const { handler, arrived } = heldHandler();
    const server = await start(handler, 50);
    const socket = connect(server.port, HOST);
    const cut = once(socket, 'close');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await arrived;

    await server.close();
    await cut;
  });

  it('closes only once, however often close() is called', async () => {
    const server = await start((_req, res) => res.end());

    await Promise.all([server.close(), server.close()]);
    await expect(fetch(server.url)).rejects.toThrow('fetch failed');
  });

  it('says which variable to change when the port is taken', async () => {
    const other = createServer().listen(0, HOST);
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;

    const attempt = startServer(() => {}, { host: HOST, port, portVariable: 'TILLGATE_PORT' });

    await expect(attempt).rejects.toThrow(
      `cannot listen on http://127.0.0.1:${port}: another process does; stop it, or set TILLGATE_PORT to a free port`,
    );
    other.close();
  });

  it('says which variable to change when the host is not this machine', async () => {
    await expect(startServer(() => {}, { host: '192.0.2.1', port: 0 })).rejects.toThrow(
      'cannot listen on http://192.0.2.1:0: this machine has no such IP address; set TILLGATE_HOST to one that it has',
    );
  });
});

const PROBLEM_TYPES = 'https://api.test/problems/';
const READY: Readiness = { ready: true, draining: false, components: { keys: 'fresh' } };

describe('the admin app', () => {
  it('counts requests by method, status and reason', async () => {
    const metrics = createMetrics(() => true);
    const attributes = { 'tillgate.issuer': 'https://login.test' };
    const end = addGauges(() => [
      { name: 'tillgate.generations.staleness', value: 1.5, attributes },
      { name: 'tillgate.generations.silence', value: 901, attributes },
    ]);
    const app = createAdminApp(() => READY, metrics, PROBLEM_TYPES);
    const who = { requestId: 'a', issuer: 'https://login.test', clientId: 'client-1' };
    const event = { ...who, path: '/v1/orders', durationMs: 20, detail: 'c', aborted: false };

    metrics?.observe({ ...event, method: 'GET', status: 200, reason: undefined });
    metrics?.observe({ ...event, method: 'GET', status: 401, reason: 'superseded' });
    metrics?.observe({ ...event, method: 'GET', status: 401, reason: 'superseded' });
    const response = await request(app).get('/metrics');

    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(response.text).toContain('tillgate_requests_total{method="GET",status="200",reason=""} 1\n');
    expect(response.text).toContain('tillgate_requests_total{method="GET",status="401",reason="superseded"} 2\n');
    expect(response.text).toContain('tillgate_request_duration_seconds_count 3\n');
    expect(response.text).toContain('tillgate_ready 1\n');
    expect(response.text).toContain(
      'tillgate_generations_staleness_seconds{tillgate_issuer="https://login.test"} 1.5\n',
    );
    expect(response.text).toContain('tillgate_generations_silence_seconds{tillgate_issuer="https://login.test"} 901\n');
    expect(response.text).toContain('process_cpu_seconds_total');
    expect(response.text).not.toMatch(/orders|client-1/);
    metrics?.close();
    end();
  });

  it('says what to install when prom-client is missing', async () => {
    const app = createAdminApp(() => READY, undefined, PROBLEM_TYPES);

    const response = await request(app).get('/metrics');

    const type = `${PROBLEM_TYPES}metrics_unavailable`;
    expectProblem(response, { status: 503, code: 'metrics_unavailable', type });
    expect(response.body.detail).toBe(
      'Metrics are made by prom-client, which is not installed: npm install prom-client@15',
    );
  });

  it('serves health, metrics and nothing else', async () => {
    const app = createAdminApp(() => READY, undefined, PROBLEM_TYPES);

    expect((await request(app).get('/livez')).status).toBe(200);
    expect((await request(app).get('/readyz')).status).toBe(200);
    const type = `${PROBLEM_TYPES}not_found`;
    expectProblem(await request(app).get('/v1/orders'), { status: 404, code: 'not_found', type });
  });
});

describe('startApi', () => {
  const issuer = createTestIssuer();

  function start(env: Record<string, string>) {
    const settings = readSettings({
      TILLGATE_AUTH_URL: 'https://login.test',
      TILLGATE_PORT: '0',
      TILLGATE_LOG_LEVEL: 'silent',
      ...env,
    });
    return startApi({ settings, gate: issuer.options });
  }

  it('listens on both ports, and counts the requests to the API', async () => {
    const api = await start({ TILLGATE_ADMIN_PORT: '0' });

    expect((await fetch(`${api.url}/v1/orders`)).status).toBe(401);
    const metrics = await (await fetch(`${api.adminUrl}/metrics`)).text();

    expect(metrics).toContain('tillgate_requests_total{method="GET",status="401",reason="missing_token"} 1\n');
    await api.close();
  });

  it('has no admin port by default', async () => {
    const api = await start({});

    expect(api.adminUrl).toBeUndefined();
    expect((await fetch(`${api.url}/metrics`)).status).toBe(404);
    await api.close();
  });

  it('stops in less than a second with idle keep-alive connections, not ready from the first moment', async () => {
    const api = await start({});
    await Promise.all([1, 2, 3].map(async () => (await fetch(`${api.url}/livez`)).text()));

    const startedMs = performance.now();
    const closed = api.close();

    expect(api.app.readiness()).toMatchObject({ ready: false, draining: true });
    await closed;
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it('closes the API when the admin port is taken', async () => {
    const other = await start({});
    const taken = new URL(other.url).port;

    await expect(start({ TILLGATE_ADMIN_PORT: taken })).rejects.toThrow(
      `cannot listen on http://127.0.0.1:${taken}: another process does; stop it, or set TILLGATE_ADMIN_PORT to a free port`,
    );
    await other.close();
  });
});
