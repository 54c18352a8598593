import { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** A connection that leads nowhere: what is written to it is gone. */
function nowhere(): Socket {
  return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() }) as Socket;
}

/** Runs one request through an app without a network, and resolves with its status. */
export function pass(app: RequestListener, authorization: string | undefined, url = '/v1/orders'): Promise<number> {
  const socket = nowhere();
  const req = new IncomingMessage(socket);
  const rawHeaders = ['Host', 'api.test', ...(authorization === undefined ? [] : ['Authorization', authorization])];
  Object.assign(req, { method: 'GET', url, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 });
  Object.assign(req, { rawHeaders, headers: Object.fromEntries(pairs(rawHeaders)), complete: true });
  req.push(null);
  const res = new ServerResponse(req);
  res.assignSocket(socket);
  return new Promise((resolve) => {
    res.once('finish', () => resolve(res.statusCode));
    app(req, res);
  });
}

function pairs(raw: readonly string[]): [string, string][] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), raw[index + 1] ?? '']] : []));
}
