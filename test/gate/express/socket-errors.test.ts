import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { authenticate } from '../../../src/gate';
import type { AuthenticateOptions, Gate } from '../../../src/gate';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

const gates: Gate[] = [];
afterEach(() => Promise.all(gates.splice(0).map((gate) => gate.close())));

function gateWith(options: Partial<AuthenticateOptions> = {}): Gate {
  const given = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS };
  const gate = authenticate({ ...given, logger: recordingLogger(), ...options } as AuthenticateOptions);
  gates.push(gate);
  return gate;
}

const bearer = (raw: string): Record<string, string> => ({ authorization: `Bearer ${raw}` });
const requestWith = (headers: Record<string, string> = {}): IncomingMessage => {
  return { method: 'GET', url: '/v1/events', headers, rawHeaders: Object.entries(headers).flat() } as never;
};

describe('gate.verify() of a client that resets its connection', () => {
  /** A fake socket of an upgrade: Node has taken its own listener off. */
  const socketOf = (): EventEmitter & { destroyed: boolean } => Object.assign(new EventEmitter(), { destroyed: false });
  /** A gate whose keys arrive when the test says so. */
  function waitingGate() {
    let arrive = (_response: Response): void => undefined;
    const keys = new Promise<Response>((resolve) => (arrive = resolve));
    const gate = gateWith({ keys: undefined, jwksUri: `${ISSUER}/jwks`, fetch: () => keys });
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
    const gate = gateWith();
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
    expect(await gateWith().verify(req as IncomingMessage)).toMatchObject({ clientId: 'pos-17' });
  });
});
