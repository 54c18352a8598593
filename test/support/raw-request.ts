import type { Express } from 'express';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Response } from 'supertest';

/** An app on loopback that is sent raw bytes, including requests that no HTTP client would send. */
export interface RawServer {
  /** Sends the lines of one request head and an optional body; resolves with the response in supertest's shape. */
  send(lines: readonly string[], body?: string): Promise<Response>;
  close(): Promise<void>;
}

export async function rawServer(app: Express): Promise<RawServer> {
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { send: (lines, body) => sendRaw(port, lines, body), close: () => close(server) };
}

/** Sends the lines of one request head and an optional body to a port of this machine. */
export function sendRaw(port: number, lines: readonly string[], body = ''): Promise<Response> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => (received += chunk));
    socket.on('end', () => resolve(parse(received)));
    socket.on('error', reject);
    socket.write([...lines, 'Host: api.test', 'Connection: close', '', body].join('\r\n'), 'latin1');
  });
}

function parse(received: string): Response {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const text = rest.join('\r\n\r\n');
  const body: unknown = headers['content-type']?.includes('json') && text !== '' ? JSON.parse(text) : {};
  return { status: Number(statusLine.split(' ')[1]), headers, text, body } as unknown as Response;
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
