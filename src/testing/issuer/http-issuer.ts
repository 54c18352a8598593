import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, logHandler, option, readBody, readOptions, systemSchedule } from 'tillgate/internal';
import type { TableOf } from 'tillgate/internal';
import { publishingIssuer, TEST_ISSUER_OPTIONS } from './test-issuer';
import type { TestIssuer, TestIssuerOptions } from './test-issuer';

/** Options of `startTestIssuer()`. */
export interface HttpTestIssuerOptions extends Omit<TestIssuerOptions, 'issuer'> {
  /** Port on 127.0.0.1, for a server under test that is configured beforehand. Default: any free one. */
  readonly port?: number | undefined;
}

/** A test issuer that can be called over HTTP, as a real one is. Its `issuer` is its URL. */
export interface HttpTestIssuer extends TestIssuer {
  /** URL of its key set, for a server that does not discover it. */
  readonly jwksUri: string;
  /** Requests for the key set so far, including those that failed. */
  readonly fetches: number;
  /** Requests for a token so far, including those that failed. */
  readonly tokenRequests: number;
  /**
   * Makes every endpoint of this issuer fail; without `fault` they work again. Open requests are cut off.
   *
   * @param fault - `503`; `hang`: no response at all; `garbage`: something else than JSON
   * @throws TypeError when the fault is unknown
   */
  outage(this: void, fault?: '503' | 'hang' | 'garbage'): void;
  /** Stops listening and closes every connection. */
  close(this: void): Promise<void>;
}

const FAULTS = {
  '503': (res) => sendJson(res, 503, { error: 'temporarily_unavailable' }),
  hang: () => undefined,
  garbage: (res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>This is not the page you wanted.</p>'),
} satisfies Record<string, (res: ServerResponse) => unknown>;

/**
 * Starts an issuer on 127.0.0.1 for gates that discover it and fetch its keys: metadata (RFC 8414 and OpenID Connect),
 * key set, `POST /connect/token` for any client id and secret, `GET /generations`, its log of changes. A gate in this process
 * that was given `options` sees a `bump()` with its next request; give a gate in another process the URL
 * `<issuer>/generations` as its generation source.
 *
 * @throws TypeError when an option is wrong
 * @throws Error when it cannot listen
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { startTestIssuer } from '@tillgate/testing';
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
  const { port, ...given } = readOptions('startTestIssuer', options, {
    port: option.number({ min: 0, max: 65_535, integer: true }, 0),
    ...TEST_ISSUER_OPTIONS,
  } satisfies TableOf<HttpTestIssuerOptions>);
  let endpoints: ReadonlyMap<string, Handler> = new Map();
  const openResponses = new Set<ServerResponse>();
  let fetches = 0;
  let tokenRequests = 0;
  let fault: keyof typeof FAULTS | undefined;

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const [path = ''] = (req.url ?? '').split('?', 1);
    if (req.method === 'GET' && path === JWKS_PATH) fetches += 1;
    if (req.method === 'POST' && path === TOKEN_PATH) tokenRequests += 1;
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
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const issuer = publishingIssuer(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, given, 'http');
  endpoints = issuerEndpoints(issuer);

  const overHttp = {
    jwksUri: issuer.testIssuer.issuer + JWKS_PATH,
    get fetches() {
      return fetches;
    },
    get tokenRequests() {
      return tokenRequests;
    },
    outage(next?: keyof typeof FAULTS) {
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

/** Handles the requests of one endpoint. */
type Handler = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

/** Path of the key set. */
const JWKS_PATH = '/.well-known/openid-configuration/jwks';

const GENERATIONS_PATH = '/generations';
const TOKEN_PATH = '/connect/token';
const TOKEN_LIFETIME_SECONDS = 300;
const MAX_FORM_BYTES = 100_000;

/** Makes the endpoints of a test issuer, by method and path. */
function issuerEndpoints({ testIssuer, jwks, log }: ReturnType<typeof publishingIssuer>): ReadonlyMap<string, Handler> {
  const { issuer } = testIssuer;

  function metadata(_req: IncomingMessage, res: ServerResponse): void {
    sendJson(res, 200, {
      issuer,
      token_endpoint: issuer + TOKEN_PATH,
      jwks_uri: issuer + JWKS_PATH,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      response_types_supported: [],
      subject_types_supported: ['public'],
    });
  }

  const serveLog = logHandler({ log, schedule: systemSchedule, clock: testIssuer.clock.now });
  function generations(req: IncomingMessage, res: ServerResponse): void {
    req.url = req.url?.slice(GENERATIONS_PATH.length);
    serveLog(req, res);
  }

  return new Map<string, Handler>([
    ['GET /.well-known/openid-configuration', metadata],
    ['GET /.well-known/oauth-authorization-server', metadata],
    [`GET ${JWKS_PATH}`, (_req, res) => sendJson(res, 200, jwks)],
    [`GET ${GENERATIONS_PATH}`, generations],
    [`POST ${TOKEN_PATH}`, (req, res) => issueToken(testIssuer, req, res)],
  ]);
}

/** Client credentials grant (RFC 6749 sections 4.4 and 5.2) for any client id and secret, by Basic or in the form. */
async function issueToken(issuer: TestIssuer, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const form = new URLSearchParams((await readBody(req, MAX_FORM_BYTES))?.toString());
  const clientId = basicUser(req.headers.authorization) ?? form.get('client_id');
  const grantType = form.get('grant_type');
  if (!clientId) {
    res.setHeader('WWW-Authenticate', 'Basic realm="token"');
    const error_description = 'Send a client_id, in the form or by HTTP Basic; any will do.';
    return sendJson(res, 401, { error: 'invalid_client', error_description });
  }
  if (grantType !== 'client_credentials') {
    const error = grantType === null ? 'invalid_request' : 'unsupported_grant_type';
    const error_description = 'Send grant_type=client_credentials in a form-encoded body.';
    return sendJson(res, 400, { error, error_description });
  }
  const scope = form.get('scope') ?? undefined;
  sendJson(res, 200, {
    access_token: issuer.token({ clientId, scope, lifetimeSeconds: TOKEN_LIFETIME_SECONDS }),
    token_type: 'Bearer',
    expires_in: TOKEN_LIFETIME_SECONDS,
    scope,
  });
}

/** Client id and secret are form-encoded first (RFC 6749 section 2.3.1). */
function basicUser(authorization = ''): string | undefined {
  const encoded = /^Basic +(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const [id = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  return new URLSearchParams(`id=${id}`).get('id') ?? undefined;
}

/** Sends JSON that must not be cached. */
function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify(body));
}
