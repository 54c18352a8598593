import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, readOptions } from '../../core/options';
import { COMMON_OPTIONS, publishingIssuer } from '../test-issuer/test-issuer';
import type { TestIssuer, TestIssuerOptions } from '../test-issuer/test-issuer';
import { issuerEndpoints, JWKS_PATH, sendJson } from './endpoints';
import type { Handler } from './endpoints';

/** Options of `startTestIssuer()`. */
export interface HttpTestIssuerOptions extends Omit<TestIssuerOptions, 'issuer'> {
  /** Port on 127.0.0.1, for a server under test that is configured beforehand. Default: any free one. */
  readonly port?: number | undefined;
}

/** A test issuer that can be called over HTTP, as a real one is. Its `issuer` is its URL. */
export interface HttpTestIssuer extends TestIssuer {
  /** Requests for the key set so far, including those that failed. */
  readonly fetches: number;
  /**
   * Makes every endpoint of this issuer fail; without `fault` they work again. Open requests and streams are cut off.
   *
   * @throws TypeError when the fault is unknown
   */
  outage(this: void, fault?: Outage): void;
  /** Stops listening and closes every connection. */
  close(this: void): Promise<void>;
}

/** How a test issuer fails: with a 503, with no response at all, or with something else than JSON. */
export type Outage = '503' | 'hang' | 'garbage';

const FAULTS = {
  '503': (res) => sendJson(res, 503, { error: 'temporarily_unavailable' }),
  hang: () => undefined,
  garbage: (res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>This is not the page you wanted.</p>'),
} as const satisfies Record<Outage, (res: ServerResponse) => unknown>;

const PORTS = { unit: 'ports', min: 0, max: 65_535, integer: true };

/**
 * Starts an issuer on 127.0.0.1 for gates that discover it and fetch its keys: metadata (RFC 8414 and OpenID Connect),
 * key set, `POST /connect/token` for any client id and secret, `GET /generations` with its stream. A gate in this process
 * that was given `options` sees a `bump()` with its next request; give a gate in another process the URL
 * `<issuer>/generations` as its generation source.
 *
 * @throws TypeError when an option is wrong
 * @throws Error when it cannot listen
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { startTestIssuer } from 'tillgate/testing';
 *
 * export async function tryAnOutage() {
 *   const issuer = await startTestIssuer();
 *   const gate = authenticate(issuer.options);
 *   await gate.ready({ timeoutMs: 5_000 });
 *   issuer.outage('503');
 *   issuer.clock.advance(4_200_000); // the last good keys are too old now: requests get 503
 *   await gate.close();
 *   await issuer.close();
 * }
 * ```
 */
export async function startTestIssuer(options: HttpTestIssuerOptions = {}): Promise<HttpTestIssuer> {
  const read = readOptions('startTestIssuer', options, ['port', ...COMMON_OPTIONS]);
  let endpoints: ReadonlyMap<string, Handler> = new Map();
  const openResponses = new Set<ServerResponse>();
  let fetches = 0;
  let fault: Outage | undefined;

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const [path = ''] = (req.url ?? '').split('?', 1);
    if (req.method === 'GET' && path === JWKS_PATH) fetches += 1;
    openResponses.add(res);
    res.once('close', () => openResponses.delete(res));
    if (fault) return void FAULTS[fault](res);
    const handler = endpoints.get(`${req.method} ${path}`);
    if (handler) return handler(req, res);
    const known = [...endpoints.keys()];
    const methods = known.flatMap((key) => (key.endsWith(` ${path}`) ? [key.split(' ', 1)[0]] : []));
    if (methods.length > 0) res.setHeader('Allow', methods.join(', '));
    sendJson(res, methods.length > 0 ? 405 : 404, { error: 'not_here', known });
  }

  // A handler fails when the client disconnects while sending the body.
  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  await once(server.listen(read.number('port', 0, PORTS), '127.0.0.1'), 'listening');
  const issuer = publishingIssuer(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, read, 'http');
  endpoints = issuerEndpoints(issuer);

  const overHttp = {
    get fetches() {
      return fetches;
    },
    outage(next?: Outage) {
      if (next !== undefined && !Object.hasOwn(FAULTS, next)) {
        const known = Object.keys(FAULTS).join(', ');
        throw new TypeError(`outage(): expected one of ${known}, or nothing, got ${describe(next)}`);
      }
      if (next !== fault) for (const res of openResponses) res.destroy();
      fault = next;
    },
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
  // Not assigned: that would read the getter only once.
  return Object.defineProperties(issuer.testIssuer, Object.getOwnPropertyDescriptors(overHttp)) as HttpTestIssuer;
}
