import { createServer, get, Agent } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { startServer } from '../../src/app/server';
import type { RunningServer } from '../../src/app/server';
import { createLog } from '../../src/app/log';

const HOST = '127.0.0.1';
const WHERE = { host: HOST, port: 0, baseUrl: 'https://api.test', log: createLog('silent') };

function start(handler: RequestListener, drainDeadlineMs?: number): Promise<RunningServer> {
  const limits = drainDeadlineMs === undefined ? {} : { drainDeadlineMs };
  return startServer(handler, { ...WHERE, limits });
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

/** A deadline for draining that is longer than a test may take: what waits for it fails. */
const NEVER_MS = 600_000;
const LONGER_THAN_GRACE_MS = 150;

/** Then timers run before sockets are read, as on a busy machine. */
function blockThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('startServer', () => {
  it('listens on a free port, and returns its URL', async () => {
    const server = await start((_req, res) => res.end('hello'));
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    expect(await (await fetch(server.url)).text()).toBe('hello');
    await server.close();
  });

  it('closes immediately when all connections are idle', async () => {
    const server = await start((_req, res) => res.end('hello'), NEVER_MS);
    const sockets = await Promise.all([1, 2, 3].map(() => idleConnection(server.port)));
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close')));
    await server.close();
    await closed;
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
    }, NEVER_MS);
    const agent = new Agent({ keepAlive: true });
    const response = await new Promise<IncomingMessage>((resolve) => get(server.url, { agent }, resolve));

    const closed = server.close();
    end();

    expect(await bodyOf(response)).toBe('firstlast');
    await closed;
    agent.destroy();
  });

  it('resets no connection that the operating system has accepted', async () => {
    const server = await start((_req, res) => res.end('hello'));
    const outcomeOf = (): Promise<string> =>
      new Promise((resolve) => {
        const req = get({ host: HOST, port: server.port, agent: false }, (res) =>
          res.resume().once('end', () => resolve(String(res.statusCode))),
        );
        req.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
      });
    // Without an open connection there is no grace.
    await idleConnection(server.port);
    const closed = server.close();
    for (let grace = 1; grace <= 3; grace++) {
      const outcomes = Array.from({ length: 20 }, outcomeOf);
      await new Promise(setImmediate);
      blockThread(LONGER_THAN_GRACE_MS);
      expect(await Promise.all(outcomes)).toEqual(outcomes.map(() => '200'));
    }
    await closed;
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
    const attempt = startServer(() => {}, { ...WHERE, port });
    await expect(attempt).rejects.toThrow(
      `cannot listen on http://127.0.0.1:${port}: another process does; stop it, or set TILLGATE_PORT to a free port`,
    );
    other.close();
  });

  it('says which variable to change when the host is not this machine', async () => {
    await expect(startServer(() => {}, { ...WHERE, host: '192.0.2.1' })).rejects.toThrow(
      'cannot listen on http://192.0.2.1:0: this machine has no such IP address; set TILLGATE_HOST to one that it has',
    );
  });
});
