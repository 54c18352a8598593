import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** What a broken server does with a connection on which a request has come. */
export type Fault = (socket: Socket, request: string) => void;

/** A server on loopback that answers byte by byte what no HTTP server would. */
export interface FaultServer {
  readonly origin: string;
  /** What happens to requests from now on. */
  behave: Fault;
  /** First lines of the requests so far. */
  readonly requests: string[];
  /** Bytes that clients took of the last answer. */
  readonly bytesTaken: number;
  stop(): Promise<void>;
}

export async function faultServer(behave: Fault): Promise<FaultServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let last: Socket | undefined;
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
      last = socket;
      self.behave(socket, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const self: FaultServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behave,
    requests,
    get bytesTaken() {
      return (last?.bytesWritten ?? 0) - (last?.writableLength ?? 0);
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

/** A whole answer, as a server that is well would give it. */
export function answer(body: string | Buffer, { status = '200 OK', headers = '' } = {}): Fault {
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

/** The head of a good answer, then `chunk` again and again: at once as fast as it is taken, or every so many ms. */
export function endless(head: string, chunk: Buffer, everyMs?: number): Fault {
  return (socket) => {
    socket.write(head);
    if (everyMs !== undefined) {
      const timer = setInterval(() => socket.write(chunk), everyMs);
      socket.once('close', () => clearInterval(timer));
      return;
    }
    const pump = (): void => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', pump);
    pump();
  };
}
