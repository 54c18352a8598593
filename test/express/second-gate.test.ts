import { authenticate, requireScope } from '../../src';
import { gateApp } from '../support/gate-app';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

function secondGate() {
  return authenticate({
    ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS, logger: recordingLogger() },
    unguarded: 'refuse',
  });
}

describe('a second gate', () => {
  it('needs a guard of its own: one before it does not count', async () => {
    const through = gateApp({
      unguarded: 'refuse',
      routes: (app, reach) => app.get('/v1/orders', requireScope('orders:read'), secondGate(), reach),
    });
    expect((await through.get(token())).status).toBe(500);
  });

  it('is satisfied by a guard after it', async () => {
    const through = gateApp({
      unguarded: 'refuse',
      routes: (app, reach) => app.get('/v1/orders', secondGate(), requireScope('orders:read'), reach),
    });
    expect((await through.get(token())).status).toBe(200);
  });
});
