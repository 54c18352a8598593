import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { AuthError, authOf, refuseUpgrade } from '../../../src/gate';
import type { AuthenticateOptions, Decision, Gate } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import { BASE_URL, boundToken, proof } from '../../support/dpop';
import { testGate } from '../../support/gate-app';
import { ISSUER, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';
import { eventually } from '../../support/key-server';

const closing: (() => unknown)[] = [];
afterEach(() => closing.splice(0).forEach((close) => close()));

function gateWith(options: Partial<AuthenticateOptions> = {}) {
  const decisions: Decision[] = [];
  const logger = recordingLogger();
  const gate = testGate({ logger, onDecision: (decision) => void decisions.push(decision), ...options });
  return { gate, decisions, logger };
}

/** A request as a server gets it. */
function requestWith(headers: Record<string, string> = {}, url = '/v1/events'): IncomingMessage {
  const rawHeaders = Object.entries(headers).flat();
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { method: 'GET', url, headers: lower, rawHeaders, headersDistinct: {} } as unknown as IncomingMessage;
}

const bearer = (value: string): Record<string, string> => ({ Authorization: `Bearer ${value}` });

describe('gate.verify()', () => {
  it('resolves to the caller, whom authOf() knows afterwards; also from the cache', async () => {
    const { gate, decisions } = gateWith();
    const raw = token();
    for (let turn = 0; turn < 3; turn++) {
      const req = requestWith(bearer(raw));
      const auth = await gate.verify(req);
      expect(auth).toMatchObject({ clientId: 'pos-17', issuer: ISSUER });
      expect(authOf(req)).toBe(auth);
    }
    expect(decisions.map(({ outcome, path }) => [outcome, path])).toEqual(
      Array(3).fill(['authenticated', '/v1/events']),
    );
  });

  it('decides about a session whose request has lost its connection, also where the signature takes long', async () => {
    const key = testKey('ES512');
    const { gate } = gateWith({ keys: jwks(key) });
    const req = Object.assign(requestWith(bearer(token({ key }))), { socket: { destroyed: true } });
    expect(await gate.verify(req)).toMatchObject({ clientId: 'pos-17' });
  });

  it.each([
    ['no token', {}, 401, 'missing_token', 'Bearer realm="api"'],
    ['a bad one', bearer('x'), 401, 'malformed_token', 'error="invalid_token"'],
    ['an expired one', bearer(token({ claims: { exp: 1 } })), 401, 'expired', 'error="invalid_token"'],
    ['a malformed header', { Authorization: 'Bearer a b' }, 400, 'malformed_authorization', 'error="invalid_request"'],
  ])('rejects %s as the middleware refuses it', async (_what, headers, status, reason, challenge) => {
    const { gate, decisions, logger } = gateWith();
    const req = requestWith(headers);
    const error = await gate.verify(req).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AuthError);
    const refusal = error as AuthError;
    expect([refusal.status, refusal.reason, authOf(req)]).toEqual([status, reason, undefined]);
    expect(refusal.headers['WWW-Authenticate']).toContain(challenge);
    expect(decisions).toEqual([expect.objectContaining({ outcome: 'refused', reason, status })]);
    expect(logger.at('info')).toContainEqual(expect.objectContaining({ fields: expect.objectContaining({ reason }) }));
  });

  it('refuses a token in the query', async () => {
    const req = requestWith({}, `/v1/events?access_token=${token()}`);
    await expect(gateWith().gate.verify(req)).rejects.toMatchObject({ reason: 'token_in_query' });
  });

  it('resolves to undefined without a token at an optional gate', async () => {
    const { gate, decisions } = gateWith({ optional: true });
    expect(await gate.verify(requestWith())).toBeUndefined();
    expect(decisions).toEqual([expect.objectContaining({ outcome: 'anonymous' })]);
  });

  it('rejects with 503 and Retry-After while the keys are not available', async () => {
    const { gate } = gateWith({
      ...{ keys: undefined, jwksUri: `${ISSUER}/jwks` },
      fetch: () => Promise.reject(new Error('down')),
    });
    closing.push(() => gate.close());
    const error = (await gate.verify(requestWith(bearer(token()))).catch((caught: unknown) => caught)) as AuthError;
    expect(error).toMatchObject({ status: 503, reason: 'keys_unavailable' });
    expect(Object.keys(error.headers)).toEqual(['Retry-After']);
  });
});

describe('gate.verify() at a gate with DPoP', () => {
  const events = `${BASE_URL}/v1/events`;

  it('takes the proof of the request, once', async () => {
    const { gate } = gateWith({ possession: [dpop({ baseUrl: BASE_URL })] });
    const headers = { Authorization: `DPoP ${boundToken()}`, DPoP: proof({ url: events }) };
    expect(await gate.verify(requestWith(headers))).toMatchObject({ clientId: 'pos-17' });
    await expect(gate.verify(requestWith(headers))).rejects.toMatchObject({ reason: 'invalid_dpop_proof' });
  });

  it('rejects a proof without a nonce with one', async () => {
    const { gate } = gateWith({ possession: [dpop({ baseUrl: BASE_URL, nonce: true })] });
    const headers = { Authorization: `DPoP ${boundToken()}`, DPoP: proof({ url: events }) };
    const error = (await gate.verify(requestWith(headers)).catch((caught: unknown) => caught)) as AuthError;
    expect(error.reason).toBe('dpop_nonce_required');
    expect(error.headers).toEqual({
      'WWW-Authenticate': expect.stringMatching(/^DPoP .*error="use_dpop_nonce"/) as string,
      'DPoP-Nonce': expect.any(String) as string,
    });
  });
});

describe('refuseUpgrade()', () => {
  /** What a server writes to a socket whose upgrade it decides about. */
  async function upgraded(headers: string, decide: Parameters<typeof startServer>[0]): Promise<string> {
    const port = await startServer(decide);
    const socket = connect(port, '127.0.0.1');
    closing.push(() => socket.destroy());
    socket.write(`GET /v1/events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`);
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    await once(socket, 'close');
    return text;
  }

  async function startServer(decide: (req: IncomingMessage, socket: Duplex) => unknown) {
    const server = createServer().on('upgrade', decide).listen(0, '127.0.0.1');
    closing.push(() => server.close());
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  it('responds as the middleware does, and closes the connection', async () => {
    const { gate } = gateWith({ resource: 'https://api.test' });
    const decide: Parameters<typeof startServer>[0] = (req, socket) =>
      gate.verify(req).then(
        () => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
        (error: unknown) => refuseUpgrade(socket, error),
      );
    const [head = '', body = ''] = (await upgraded('', decide)).split('\r\n\r\n');
    expect(head.split('\r\n')[0]).toBe('HTTP/1.1 401 Unauthorized');
    const challenge = 'WWW-Authenticate: Bearer realm="api", resource_metadata="https://api.test/.well-known/';
    for (const line of [challenge, 'Connection: close', 'Cache-Control: no-store'])
      expect(head).toContain(`\r\n${line}`);
    expect(JSON.parse(body)).toMatchObject({ code: 'missing_token', status: 401 });
    const good = await upgraded(`Authorization: Bearer ${token()}\r\n`, decide);
    expect(good).toBe('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  });

  it('says nothing about any other error', async () => {
    const text = await upgraded('', (_req, socket) => refuseUpgrade(socket, new Error('secret')));
    expect(text).toMatch(/^HTTP\/1\.1 500 Internal Server Error\r\n/);
    expect(text).not.toContain('secret');
  });

  it('closes the connection while the response to an earlier request is pending, and does not throw', async () => {
    const server = createServer(() => undefined).listen(0, '127.0.0.1');
    closing.push(() => server.close());
    const refused = once(server, 'upgrade') as Promise<[IncomingMessage, Duplex]>;
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const upgrade = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    socket.write(`GET /slow HTTP/1.1\r\nHost: x\r\n\r\n${upgrade}`);
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    refuseUpgrade((await refused)[1], new AuthError('missing_token'));
    await once(socket, 'close');
    expect(text).toBe('');
  });

  it('survives a client that has gone', async () => {
    let left: Duplex | undefined;
    const port = await startServer((_req, socket) => (left = socket));
    const socket = connect(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await eventually(() => left !== undefined);
    socket.resetAndDestroy();
    refuseUpgrade(left!, new AuthError('missing_token'));
    await eventually(() => left!.destroyed);
  });
});

describe('gate.verify() of a client that resets its connection', () => {
  /** A fake socket of an upgrade: Node has taken its own listener off. */
  const socketOf = (): EventEmitter & { destroyed: boolean } => Object.assign(new EventEmitter(), { destroyed: false });
  /** A gate whose keys arrive when the test says so. */
  function waitingGate() {
    let arrive = (_response: Response): void => undefined;
    const keys = new Promise<Response>((resolve) => (arrive = resolve));
    const { gate } = gateWith({ keys: undefined, jwksUri: `${ISSUER}/jwks`, fetch: () => keys });
    return { gate, arrive: () => arrive(Response.json(jwks(testKey()))) };
  }
  const touched = (): never => {
    throw new Error('the socket of HTTP/2 was touched');
  };
  const requestOn = (socket: unknown, upgrade = false): IncomingMessage =>
    Object.assign(requestWith(bearer(token())), { socket, upgrade });

  it('listens to its socket while it decides, once for all pipelined requests, and not afterwards', async () => {
    const { gate, arrive } = waitingGate();
    const socket = socketOf();
    const deciding = Array.from({ length: 20 }, () => gate.verify(requestOn(socket)));
    expect(socket.listenerCount('error')).toBe(1);
    socket.emit('error', new Error('read ECONNRESET'));
    arrive();
    await Promise.all(deciding);
    expect(socket.listenerCount('error')).toBe(0);
    await expect(gate.verify(Object.assign(requestWith(), { socket }))).rejects.toMatchObject({ status: 401 });
    expect(socket.eventNames()).toEqual([]);
  });

  it('leaves no moment to a caller that listens in the same turn', async () => {
    const { gate } = gateWith();
    for (const raw of [token(), token({ claims: { exp: 1 } })]) {
      const socket = socketOf();
      const req = Object.assign(requestWith(bearer(raw)), { socket });
      // What is emitted in the next tick comes before the caller's own listener, where the verdict is known already.
      process.nextTick(() => socket.emit('error', new Error('read ECONNRESET')));
      await gate.verify(req).catch(() => undefined);
      expect(() => socket.emit('error', new Error('read ECONNRESET'))).toThrow('read ECONNRESET');
    }
  });

  it('rejects an upgrade whose client has gone meanwhile, so that nothing is opened for it', async () => {
    const { gate, arrive } = waitingGate();
    const [upgraded, session] = [socketOf(), socketOf()];
    const deciding = Promise.allSettled([gate.verify(requestOn(upgraded, true)), gate.verify(requestOn(session))]);
    upgraded.destroyed = session.destroyed = true;
    arrive();
    expect(await deciding).toEqual([
      { status: 'rejected', reason: expect.objectContaining({ privateDetail: 'the client has disconnected' }) },
      { status: 'fulfilled', value: expect.objectContaining({ clientId: 'pos-17' }) },
    ]);
  });

  it.each([
    ['without a socket', { socket: undefined }],
    ['whose socket is destroyed', { socket: { destroyed: true } }],
    ['of HTTP/2, where Node listens', { socket: { on: touched, off: touched }, httpVersionMajor: 2 }],
  ])('decides about a request %s', async (_what, parts) => {
    const req: object = Object.assign(requestWith(bearer(token())), parts);
    expect(await gateWith().gate.verify(req as IncomingMessage)).toMatchObject({ clientId: 'pos-17' });
  });
});

const NAMES = ['setImmediate', 'setTimeout', 'setInterval', 'queueMicrotask'] as const;
const real = NAMES.map((name) => [name, globalThis[name]] as const);

/** Timers that never call, as fake ones that no test advances. */
function fakeTimers(): void {
  for (const name of NAMES) Reflect.set(globalThis, name, () => 0);
}

afterEach(() => {
  for (const [name, timer] of real) Reflect.set(globalThis, name, timer);
});

describe('a test that fakes timers', () => {
  /** Its signatures are verified on the event loop and in the thread pool. */
  const keys = [testKey('ES256'), testKey('ES384')];
  const gateOf = (): Gate => testGate({ keys: jwks(...keys) });
  const verify = async (gate: Gate): Promise<unknown[]> => {
    const clients: unknown[] = [];
    for (const key of keys) {
      clients.push((await gate.verify(requestWith(bearer(token({ key })))))?.clientId);
    }
    return clients;
  };

  it('before authenticate() gets its requests decided', async () => {
    fakeTimers();
    expect(await verify(gateOf())).toEqual(['pos-17', 'pos-17']);
  });

  it('after authenticate() gets its requests decided', async () => {
    const gate = gateOf();
    fakeTimers();
    expect(await verify(gate)).toEqual(['pos-17', 'pos-17']);
  });
});
