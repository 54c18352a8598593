import { createServer } from 'node:http';
import type { RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { jwks } from './keys';
import type { TestKey } from './keys';

/** A response of the server: a JSON document, or a function that writes the response itself. */
export type StubResponse = object | ((res: ServerResponse) => void);

/** The metadata and key set of an authorization server, on loopback. A test can change the responses at any time. */
export interface KeyServer {
  readonly origin: string;
  /** Requested paths, in order. */
  readonly requests: string[];
  /** Responses by path; any other path is 404. */
  readonly responses: Map<string, StubResponse>;
  /** Number of requests for `/jwks` so far. */
  readonly keyFetches: number;
  /** Publishes these keys at `/jwks`. */
  publish(...keys: readonly TestKey[]): void;
  /** Publishes OIDC metadata for an issuer on this server (default: its origin). */
  announce(issuer?: string, jwksUri?: string): void;
  /** Stops listening: new connections are refused. */
  stop(): Promise<void>;
  /** Listens again on the same port. */
  start(): Promise<void>;
}

const OIDC = '/.well-known/openid-configuration';

export async function keyServer(...keys: readonly TestKey[]): Promise<KeyServer> {
  const requests: string[] = [];
  const responses = new Map<string, StubResponse>();
  const listener: RequestListener = (req, res) => {
    const path = req.url ?? '';
    requests.push(path);
    // The time of tests is another one, which the gate would report.
    res.sendDate = false;
    const response = responses.get(path);
    if (response === undefined) res.writeHead(404).end('not found');
    else if (typeof response === 'function') (response as (res: ServerResponse) => void)(res);
    else res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(response));
  };
  let server = createServer(listener);
  let port = 0;

  async function start(): Promise<void> {
    server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    // A failed test does not keep the run alive.
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
    responses,
    get keyFetches() {
      return requests.filter((path) => path === '/jwks').length;
    },
    publish: (...published) => void responses.set('/jwks', jwks(...published)),
    announce(issuer = origin, jwksUri = `${origin}/jwks`) {
      const path = new URL(issuer).pathname.replace(/\/$/, '');
      responses.set(path + OIDC, { issuer, jwks_uri: jwksUri });
    },
    start,
    stop,
  };
  self.announce();
  if (keys.length > 0) self.publish(...keys);
  return self;
}

/** Waits until the condition holds, checking once per turn of the event loop; fails after 30 s of real time. */
export async function eventually(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`never became true: ${isTrue.toString()}`);
    await turn();
  }
}
