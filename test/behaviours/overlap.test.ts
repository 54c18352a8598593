import { eventually } from '../support/key-server';
import { newKey, testKey } from '../support/keys';
import { explain } from '../../src';
import { gateApp, remember } from '../support/gate-app';
import { base64url, goodClaims, token } from '../support/issuer';
import { remoteGate } from '../support/remote-gate';

const KEY = testKey();

describe('requests that overlap', () => {
  it("never get each other's result while the first key fetch is slow", async () => {
    let release = (): void => {};
    const through = await remoteGate([KEY]);
    through.server.responses.set('/jwks', (res) => void (release = () => res.end(JSON.stringify({ keys: [KEY.jwk] }))));

    const clients = Array.from({ length: 12 }, (_, index) => `client-${index}`);
    const forged = newKey('ES256', KEY.kid);
    const requests = clients.flatMap((client_id, index) => [
      through.get(through.token({ key: KEY, claims: { client_id, sub: client_id } })),
      through.get(through.token({ key: index % 2 ? forged : KEY, claims: { client_id, aud: 'other' } })),
    ]);
    const responses = Promise.all(requests.map((each) => each.then((response) => response)));
    await eventually(() => through.presented.length === requests.length && through.server.keyFetches === 1);
    release();

    const outcomes = (await responses).map(({ status, body }) => [status, body.code ?? body.auth.clientId]);
    const expected = clients.flatMap((client, index) => [
      [200, client],
      [401, index % 2 ? 'bad_signature' : 'wrong_audience'],
    ]);
    expect(outcomes).toEqual(expected);
    expect(through.reached).toHaveLength(clients.length);
    await through.stop();
  });

  it('never accept a forged token together with the good one whose signature it has, cached or not', async () => {
    const through = gateApp();
    const outcomes = async (...tokens: readonly string[]): Promise<unknown[]> => {
      const explained = await Promise.all(tokens.map((raw) => explain(raw, { gate: through.gate })));
      return explained.map(({ auth, checks }) => auth?.clientId ?? checks.find(({ reason }) => reason)?.reason);
    };
    for (let round = 0; round < 20; round++) {
      const good = token({ claims: { jti: `t${round}` } });
      const [header, , signature] = good.split('.');
      const payload = base64url(JSON.stringify({ ...goodClaims(), client_id: 'admin', jti: `t${round}` }));
      const forged = [header, payload, signature].join('.');
      expect(await outcomes(good, forged, good)).toEqual(['pos-17', 'bad_signature', 'pos-17']);
      expect(await outcomes(forged, good, forged)).toEqual(['bad_signature', 'pos-17', 'bad_signature']);
      await remember(through, good);
      expect((await through.get(forged)).body.code).toBe('bad_signature');
    }
  });

  it("never get each other's result once tokens are cached", async () => {
    const through = await remoteGate([KEY]);
    const tokens = ['a', 'b', 'c'].map((client_id) => through.token({ key: KEY, claims: { client_id } }));
    for (const each of tokens) await remember(through, each);
    const order = Array.from({ length: 30 }, (_, index) => index % 3);
    const responses = await Promise.all(order.map((index) => through.get(tokens[index])));
    expect(responses.map(({ body }) => body.auth.clientId)).toEqual(order.map((index) => ['a', 'b', 'c'][index]));
    await through.stop();
  });

  it('leave only req.auth on the request, nothing of passport', async () => {
    const through = await remoteGate([KEY], {
      routes: (app) =>
        void app.get('/v1/orders', (req, res) => {
          res.json(
            ['user', 'authInfo', 'login', 'logIn', 'isAuthenticated', '_passport', 'session'].filter(
              (name) => name in req,
            ),
          );
        }),
    });
    const response = await through.get(through.token({ key: KEY })).expect(200);
    expect(response.body).toEqual([]);
    await through.stop();
  });
});
