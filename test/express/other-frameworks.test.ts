import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { Http2ServerRequest, Http2ServerResponse, IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { authenticate, authOf, requireClaim, requireScope } from '../../src';
import type { Middleware } from '../../src';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server of node:http2 without a framework: the middlewares in turn, then the handler. */
async function http2Server(...middlewares: readonly Middleware[]) {
  const reached: unknown[] = [];
  function run(req: Http2ServerRequest, res: Http2ServerResponse, [first, ...rest] = middlewares): void {
    if (first) return first(req, res, (error) => (error ? res.destroy() : run(req, res, rest)));
    reached.push(authOf(req));
    res.end('reached');
  }
  const server = createServer((req, res) => run(req, res));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    reached,
    async get(authorization?: string): Promise<Received> {
      const stream = session.request({ ':path': '/orders', ...(authorization !== undefined && { authorization }) });
      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      return { status: Number(headers[':status']), headers, body: await text(stream) };
    },
    close() {
      session.destroy();
      return new Promise<void>((closed) => server.close(() => closed()));
    },
  };
}

const options = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS };

describe('a server of node:http2', () => {
  const seen: unknown[] = [];
  const gate = authenticate({ ...options, logger: recordingLogger(), unguarded: 'refuse' });
  const guards = [
    requireScope('orders:read'),
    requireClaim('sub', (value, req) => seen.push([value, req.auth?.clientId]) > 0),
  ];

  let close = (): Promise<void> => Promise.resolve();
  afterEach(() => close());

  async function open(...middlewares: readonly Middleware[]) {
    const server = await http2Server(...middlewares);
    close = () => server.close();
    return server;
  }

  it('accepts a good token; authOf() is its caller', async () => {
    const server = await open(gate, ...guards);
    const { status, body } = await server.get(`Bearer ${token()}`);
    expect([status, body]).toEqual([200, 'reached']);
    expect(server.reached).toEqual([expect.objectContaining({ clientId: 'pos-17', scopes: expect.any(Array) })]);
    expect(seen).toEqual([['pos-17', 'pos-17']]);
  });

  it.each([
    ['no token', undefined, 401, 'missing_token', 'Bearer realm="api"'],
    ['a token without the scope', `Bearer ${token({ claims: { scope: 'x' } })}`, 403, 'insufficient_scope', undefined],
    ['an expired token', `Bearer ${token({ claims: { exp: 1 } })}`, 401, 'expired', undefined],
  ])('refuses %s', async (_what, authorization, status, code, challenge) => {
    const server = await open(gate, ...guards);
    const response = await server.get(authorization);
    expect([response.status, (JSON.parse(response.body) as { code: string }).code]).toEqual([status, code]);
    if (challenge !== undefined) expect(response.headers['www-authenticate']).toBe(challenge);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(server.reached).toEqual([]);
  });

  it('replaces a response that no guard allowed by 500', async () => {
    const server = await open(gate);
    const { status, body } = await server.get(`Bearer ${token()}`);
    expect([status, (JSON.parse(body) as { code: string }).code]).toEqual([500, 'internal_error']);
  });
});

describe('authOf()', () => {
  it('knows a request only by the gate that accepted it, not by what is assigned to it', () => {
    expect(authOf({ auth: { clientId: 'forged' } })).toBeUndefined();
  });
});
