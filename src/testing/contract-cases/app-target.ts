import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { client } from './client';
import type { Answer, Outgoing, Send } from './client';
import { witness } from './witness';
import type { Harmless, Visit } from './witness';

/** Sends requests to the API under test and says which handlers they reached. */
export type Call = (request: Outgoing) => Promise<{ readonly answer: Answer; readonly reached: readonly string[] }>;

/** Between two cases nothing happens for much less time than this, in ms. */
const IDLE_MS = 250;

/** Calls whatever listens at an address: its answers are all that is seen. */
export function urlTarget(url: URL): Call {
  const send = client(url);
  return async (request) => ({ answer: await send(request), reached: [] });
}

/**
 * Calls an app, on a server on 127.0.0.1 that starts with the first request and closes when no more come. It holds no
 * process up.
 */
export function appTarget(app: RequestListener, harmless: Harmless): Call {
  const { follow, during } = witness(app, harmless);
  const visits = new Map<number | undefined, Visit>();
  let listening: Promise<{ readonly server: Server; readonly send: Send }> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let underWay = 0;

  function listen(): NonNullable<typeof listening> {
    const server = createServer((req, res) => {
      visits.set(req.socket.remotePort, follow(req));
      app(req, res);
    });
    server.on('connection', (socket) => socket.unref());
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address() as AddressInfo;
        server.unref();
        resolve({ server, send: client(new URL(`http://127.0.0.1:${port}`)) });
      });
    });
  }

  function closeSoon(): void {
    idle = setTimeout(() => {
      const opened = listening;
      listening = undefined;
      void opened?.then(({ server }) => {
        server.close();
        server.closeAllConnections();
      });
    }, IDLE_MS);
    idle.unref();
  }

  return async function call(request) {
    clearTimeout(idle);
    underWay += 1;
    try {
      const { send } = await (listening ??= listen());
      const answer = await during(() => send(request));
      const reached = visits.get(answer.localPort) ?? [];
      // What node answers itself on this connection never gets here, and must not find what another request has reached.
      visits.delete(answer.localPort);
      return { answer, reached };
    } finally {
      underWay -= 1;
      if (underWay === 0) closeSoon();
    }
  };
}
