import { createServer } from 'node:http';
import type { RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { jwks } from './keys';
import type { TestKey } from './keys';

/** An answer of the server: a document, or whatever a test writes by hand. */
export type Answer = object | ((res: ServerResponse) => void);

/** An authorization server's metadata and key set on loopback; what it answers can change at any time. */
export interface KeyServer {
  readonly origin: string;
  /** Paths in the order in which they were asked for. */
  readonly requests: string[];
  /** Answers by path; what is not there is 404. */
  readonly answers: Map<string, Answer>;
  /** Requests for the key set at `/jwks` so far. */
  readonly keyFetches: number;
  /** Publishes these keys at `/jwks`. */
  publish(...keys: readonly TestKey[]): void;
  /** Publishes OIDC metadata for an issuer on this server (default: its origin). */
  announce(issuer?: string, jwksUri?: string): void;
  /** Stops listening: connections are refused from then on. */
  stop(): Promise<void>;
  /** Listens again, at the same port. */
  start(): Promise<void>;
}

const OIDC = '/.well-known/openid-configuration';

export async function keyServer(...keys: readonly TestKey[]): Promise<KeyServer> {
  const requests: string[] = [];
  const answers = new Map<string, Answer>();
  const listener: RequestListener = (req, res) => {
    const path = req.url ?? '';
    requests.push(path);
    const answer = answers.get(path);
    if (answer === undefined) res.writeHead(404).end('not found');
    else if (typeof answer === 'function') (answer as (res: ServerResponse) => void)(res);
    else res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  };
  let server = createServer(listener);
  let port = 0;

  async function start(): Promise<void> {
    server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    // A test that fails before its end must not keep the whole run from ending.
    server.unref();
    port = (server.address() as AddressInfo).port;
  }

  async function stop(): Promise<void> {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  await start();
  const origin = `http://127.0.0.1:${port}`;
  const self: KeyServer = {
    origin,
    requests,
    answers,
    get keyFetches() {
      return requests.filter((path) => path === '/jwks').length;
    },
    publish: (...published) => void answers.set('/jwks', jwks(...published)),
    announce(issuer = origin, jwksUri = `${origin}/jwks`) {
      const path = new URL(issuer).pathname.replace(/\/$/, '');
      answers.set(path + OIDC, { issuer, jwks_uri: jwksUri });
    },
    start,
    stop,
  };
  self.announce();
  if (keys.length > 0) self.publish(...keys);
  return self;
}

/** Waits until something has come true by itself, turn by turn of the event loop; fails after 5 s of real time. */
export async function eventually(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 5_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`never came true: ${isTrue.toString()}`);
    await turn();
  }
}
