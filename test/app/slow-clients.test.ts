import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { startServer } from '../../src/app/serve';
import type { RunningServer, ServerOptions } from '../../src/app/serve';

const HOST = '127.0.0.1';
const open: RunningServer[] = [];
afterEach(() => Promise.all(open.splice(0).map((server) => server.close())));

async function start(limits: ServerOptions['limits'] = {}): Promise<RunningServer> {
  const server = await startServer(answer, { host: HOST, port: 0, limits });
  open.push(server);
  return server;
}

const answer: RequestListener = (_req, res) => void res.end('hello');

/** Sends some bytes; tells what came back when the server has closed the connection. */
async function exchange(port: number, sent: string): Promise<string> {
  const socket = connect(port, HOST);
  const received = collect(socket);
  socket.write(sent);
  await closeOf(socket);
  return received();
}

/** Also where the connection is reset. */
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

describe('a client that is late', () => {
  const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200 };
  let received: Record<'head' | 'body' | 'bodyBehindAnswer' | 'nothing', string>;

  // All at once: Node looks for late clients once a second.
  beforeAll(async () => {
    const server = await startServer(answer, { host: HOST, port: 0, limits });
    const reading = await startServer((req, res) => void req.on('end', () => res.end()).resume(), {
      host: HOST,
      port: 0,
      limits,
    });
    const [head, body, bodyBehindAnswer, nothing] = await Promise.all([
      exchange(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '),
      exchange(reading.port, `${HEAD}\r\nslow`),
      exchange(server.port, `${HEAD}\r\nslow`),
      exchange(server.port, ''),
    ]);
    received = { head, body, bodyBehindAnswer, nothing };
    await Promise.all([server.close(), reading.close()]);
  });

  it('with its head is answered 408, and the connection ends', () => {
    expect(received.head).toMatch(/^HTTP\/1.1 408 .*Connection: close/s);
  });

  it('with its body is answered 408, and the connection ends', () => {
    expect(received.body).toMatch(/^HTTP\/1.1 408 .*Connection: close/s);
  });

  it('with a body that goes on behind its answer gets no second answer, and the connection ends', () => {
    expect(received.bodyBehindAnswer.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(received.bodyBehindAnswer).toMatch(/^HTTP\/1.1 200 OK/);
  });

  it('with everything is answered 408 too', () => {
    expect(received.nothing).toMatch(/^HTTP\/1.1 408 /);
  });
});

it('a connection that idles between two requests is closed after its time', async () => {
  const { port } = await start({ keepAliveTimeoutMs: 50 });
  expect(await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^HTTP\/1.1 200 OK/);
});

it('a connection above the number allowed is closed as it comes; when others have gone there is room again', async () => {
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

it('a request that is sent on an idle connection while the server begins to stop is answered, and told to close', async () => {
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

it('half a head holds nothing up: the server stops without waiting for the rest', async () => {
  const server = await start();
  const socket = connect(server.port, HOST);
  collect(socket);
  const closed = closeOf(socket);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n');
  await once(socket, 'connect');
  // That is the system's word. Connections are accepted in turn: once a later one is answered, the server has this one,
  // and does not leave it to the system to reset.
  await exchange(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const startedMs = performance.now();
  await server.close();
  await closed;
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});

it('connections that the system holds for a busy process are answered before it stops', async () => {
  const server = await start();
  const sockets = Array.from({ length: 50 }, () => connect(server.port, HOST));
  const received = sockets.map(collect);
  const ended = Promise.all(sockets.map(closeOf));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  sockets.forEach((socket) => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  const closed = server.close();
  await new Promise((resolve) => setImmediate(resolve));
  // Nothing is accepted or read meanwhile, and every timer of the stop is due.
  const untilMs = performance.now() + 200;
  while (performance.now() < untilMs);
  await Promise.all([ended, closed]);
  expect(received.filter((text) => !text().startsWith('HTTP/1.1 200 OK'))).toEqual([]);
});
