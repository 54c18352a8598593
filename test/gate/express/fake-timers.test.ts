import { authenticate } from '../../../src/gate';
import type { Gate } from '../../../src/gate';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

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
  const gateOf = (): Gate =>
    authenticate({
      ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(...keys), clock: () => NOW_MS },
      logger: recordingLogger(),
    });
  const verify = async (gate: Gate): Promise<unknown[]> => {
    const clients: unknown[] = [];
    for (const key of keys) {
      const req = { method: 'GET', url: '/', headers: { authorization: `Bearer ${token({ key })}` } };
      clients.push((await gate.verify(req as never))?.clientId);
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
