import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { createLog } from '../../../src/app/log';
import { startServer } from '../../../src/app/server';
import type { RunningServer } from '../../../src/app/server';

const HOST = '127.0.0.1';
const WHERE = { host: HOST, port: 0, baseUrl: 'https://api.test', log: createLog('silent') };
const open: RunningServer[] = [];
afterEach(() => Promise.all(open.splice(0).map((server) => server.close())));

async function start(limits: Parameters<typeof startServer>[1]['limits'] = {}): Promise<RunningServer> {
  const server = await startServer(sayHello, { ...WHERE, limits });
  open.push(server);
  return server;
}

const sayHello: RequestListener = (_req, res) => void res.end('hello');

/** Sends bytes; resolves with what was received once the server has closed the connection. */
async function exchange(port: number, sent: string): Promise<string> {
  const socket = connect(port, HOST);
  const received = collect(socket);
  socket.write(sent);
  await closeOf(socket);
  return received();
}

/** Also resolves when the connection is reset. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.on('close', () => resolve()));
}

function collect(socket: Socket): () => string {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => void (text += chunk));
  socket.on('error', () => {});
  return () => text;
}

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n';

describe('a slow client', () => {
  const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200 };
  let received: Record<'head' | 'body' | 'lateBody' | 'nothing', string>;

  // In parallel: Node checks for slow clients once a second.
  beforeAll(async () => {
    const server = await startServer(sayHello, { ...WHERE, limits });
    const reading = await startServer((req, res) => void req.on('end', () => res.end()).resume(), { ...WHERE, limits });
    const [head, body, lateBody, nothing] = await Promise.all([
      exchange(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '),
      exchange(reading.port, `${HEAD}\r\nslow`),
      exchange(server.port, `${HEAD}\r\nslow`),
      exchange(server.port, ''),
    ]);
    received = { head, body, lateBody, nothing };
    await Promise.all([server.close(), reading.close()]);
  });

  it('with its head gets 408, and the connection ends', () => {
    expect(received.head).toMatch(/^HTTP\/1.1 408 .*Connection: close/s);
  });

  it('with its body gets 408, and the connection ends', () => {
    expect(received.body).toMatch(/^HTTP\/1.1 408 .*Connection: close/s);
  });

  it('with a body that continues after its response gets no second response, and the connection ends', () => {
    expect(received.lateBody.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(received.lateBody).toMatch(/^HTTP\/1.1 200 OK/);
  });

  it('with everything gets 408 too', () => {
    expect(received.nothing).toMatch(/^HTTP\/1.1 408 /);
  });
});

it('a connection that idles between two requests is closed after its time', async () => {
  const { port } = await start({ keepAliveTimeoutMs: 50 });
  expect(await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^HTTP\/1.1 200 OK/);
});

it('a connection above the limit is closed immediately; when others have closed, new ones are accepted', async () => {
  const { port, url } = await start({ maxConnections: 3 });
  const held = [1, 2, 3].map(() => connect(port, HOST));
  held.forEach(collect);
  await Promise.all(held.map((socket) => once(socket, 'connect')));
  await expect(exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')).resolves.toBe('');
  const gone = Promise.all(held.map(closeOf));
  held.forEach((socket) => socket.destroy());
  await gone;
  let status = 0;
  while (status !== 200) {
    status = await fetch(url, { headers: { connection: 'close' } }).then(
      (response) => response.status,
      () => 0,
    );
  }
});

it('a request that is sent on an idle connection while the server begins to stop gets a response with Connection: close', async () => {
  const server = await start();
  const socket = connect(server.port, HOST);
  const received = collect(socket);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  const closed = server.close();
  socket.write('GET /again HTTP/1.1\r\nHost: x\r\n\r\n');
  await closeOf(socket);
  await closed;
  const [, first, second] = received().split('HTTP/1.1 ');
  expect(first).toMatch(/^200 OK.*Connection: keep-alive/s);
  expect(second).toMatch(/^200 OK.*Connection: close/s);
});

/** Sends the beginning of a request; resolves when the server has accepted the connection. */
async function beginRequest(server: RunningServer): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect(server.port, HOST);
  const received = collect(socket);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n');
  await once(socket, 'connect');
  // 'connect' means that the operating system has accepted it. Connections are accepted in order: a later one is served, so the
  // server has this one too.
  await exchange(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  return { socket, received };
}

it('requests whose head has arrived only in part are served after the signal; idle connections are closed', async () => {
  const server = await start();
  const idle = connect(server.port, HOST);
  const silent = connect(server.port, HOST);
  [idle, silent].forEach(collect);
  idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');
  const requests = await Promise.all(Array.from({ length: 10 }, () => beginRequest(server)));
  const ended = Promise.all(requests.map(({ socket }) => closeOf(socket)));

  const closed = server.close();
  await Promise.all([closeOf(idle), closeOf(silent)]);
  await expect(exchange(server.port, 'GET / HTTP/1.1\r\n\r\n')).resolves.toBe('');
  for (const { socket } of requests) socket.write('Connection: keep-alive\r\n\r\n');

  await Promise.all([ended, closed]);
  const statuses = requests.map(({ received }) => /^HTTP\/1.1 (\d+) .*Connection: close/s.exec(received())?.[1]);
  expect(statuses).toEqual(Array.from({ length: 10 }, () => '200'));
});

it('a connection whose head never arrives completely is cut at the deadline', async () => {
  const server = await startServer(sayHello, { ...WHERE, limits: { drainDeadlineMs: 150 } });
  const { socket, received } = await beginRequest(server);
  const ended = closeOf(socket);
  await server.close();
  await ended;
  expect(received()).toBe('');
});

/** More than the operating system buffers on both sides. */
const LARGE = 20_000_000;

/** A server whose large responses wait for their clients; clients read only after `resume()`. */
async function startLarge(): Promise<{ server: RunningServer; responses: ServerResponse[] }> {
  const responses: ServerResponse[] = [];
  const handler: RequestListener = (req, res) => {
    responses.push(res);
    if (req.url === '/large') res.end(Buffer.alloc(LARGE, 'x'));
    else if (req.url !== '/later') res.end('hello');
  };
  const server = await startServer(handler, WHERE);
  open.push(server);
  return { server, responses };
}

/** Sends requests on one connection; resolves when the first bytes of the response wait to be read. */
async function request(server: RunningServer, ...paths: readonly string[]): Promise<Socket> {
  const socket = connect(server.port, HOST);
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
  await once(socket, 'readable');
  return socket;
}

/** Begins to stop; resolves when the idle connections are closed. */
async function beginStop(server: RunningServer): Promise<{ closed: Promise<void> }> {
  const idle = await request(server, '/');
  collect(idle);
  const closed = server.close();
  await closeOf(idle);
  return { closed };
}

it('a response that its client has not taken yet is not cut when idle connections are closed', async () => {
  const { server, responses } = await startLarge();
  const socket = await request(server, '/large');
  const { closed } = await beginStop(server);
  expect(responses[0]).toMatchObject({ writableEnded: true, writableFinished: false });
  const received = collect(socket);
  await Promise.all([closeOf(socket), closed]);
  expect(received().length).toBeGreaterThan(LARGE);
});

it('a response that its client has not taken yet is not cut when another response ends after the signal', async () => {
  const { server, responses } = await startLarge();
  const [first, second] = [await request(server, '/large'), await request(server, '/large')];
  const { closed } = await beginStop(server);
  collect(first);
  await closeOf(first);
  expect(responses[1]).toMatchObject({ writableEnded: true, writableFinished: false });
  const received = collect(second);
  await Promise.all([closeOf(second), closed]);
  expect(received().length).toBeGreaterThan(LARGE);
});

it('a request that waits for the response before it on the same connection is served after the signal', async () => {
  const { server, responses } = await startLarge();
  const socket = await request(server, '/large', '/later');
  const { closed } = await beginStop(server);
  responses[1]?.end('later');
  const received = collect(socket);
  await Promise.all([closeOf(socket), closed]);
  const [, first, second] = received().split('HTTP/1.1 ');
  expect(first?.length).toBeGreaterThan(LARGE);
  expect(second).toMatch(/^200 OK.*Connection: close.*later/s);
});

it('connections that the system holds for a busy process get responses before it stops', async () => {
  const server = await start();
  const sockets = Array.from({ length: 50 }, () => connect(server.port, HOST));
  const received = sockets.map(collect);
  const ended = Promise.all(sockets.map(closeOf));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  sockets.forEach((socket) => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  const closed = server.close();
  await new Promise((resolve) => setImmediate(resolve));
  // Nothing is accepted or read during this time, and every timer of the stop is due.
  const untilMs = performance.now() + 200;
  while (performance.now() < untilMs);
  await Promise.all([ended, closed]);
  expect(received.filter((text) => !text().startsWith('HTTP/1.1 200 OK'))).toEqual([]);
});
