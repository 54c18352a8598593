import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** What a broken server does with a connection on which a request has come; `took` counts bytes that went out. */
export type Fault = (socket: Socket, request: string, took: (bytes: number) => void) => void;

/** A server on loopback that responds byte by byte as no HTTP server would. */
export interface FaultServer {
  readonly origin: string;
  /** What happens to requests from now on. */
  behave: Fault;
  /** First lines of the requests so far. */
  readonly requests: string[];
  /** Bytes that clients took of endless responses. */
  readonly bytesTaken: number;
  stop(): Promise<void>;
}

export async function faultServer(behave: Fault): Promise<FaultServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let taken = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk;
      if (!received.includes('\r\n\r\n')) return;
      const request = received.slice(0, received.indexOf('\r\n'));
      received = '';
      requests.push(request);
      self.behave(socket, request, (bytes) => (taken += bytes));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const self: FaultServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behave,
    requests,
    get bytesTaken() {
      return taken;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

/** A whole response, as a working server would send it. */
export function respondWith(body: string | Buffer, { status = '200 OK', headers = '' } = {}): Fault {
  const bytes = Buffer.from(body);
  const head = `HTTP/1.1 ${status}\r\nContent-Length: ${bytes.length}\r\n${headers}\r\n`;
  return (socket) => void socket.write(Buffer.concat([Buffer.from(head), bytes]));
}

/** Bytes exactly as they stand, then the end of the connection. */
export function send(...parts: readonly (string | Buffer)[]): Fault {
  return (socket) => {
    for (const part of parts) socket.write(part);
    socket.end();
  };
}

/** The head of a good response, then `chunk` again and again: as fast as it is taken, or every so many ms. */
export function endless(head: string, chunk: Buffer, everyMs?: number): Fault {
  return (socket, _request, took) => {
    const write = (): boolean => socket.write(chunk, (error) => error || took(chunk.length));
    const pump = (): void => {
      while (!socket.destroyed && write());
    };
    socket.write(head);
    if (everyMs === undefined) {
      socket.on('drain', pump);
      pump();
    } else {
      const timer = setInterval(write, everyMs);
      socket.once('close', () => clearInterval(timer));
    }
  };
}

/** A body of so many bytes, of which no more is in memory than is on its way. */
export function sized(bytes: number): Fault {
  return endless(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`, Buffer.alloc(65_536, 0x20));
}
