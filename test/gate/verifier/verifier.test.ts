import { AuthError } from '../../../src/gate/index';
import { GateVerifier } from '../../../src/gate/verifier/gate-verifier';
import type { Verifier } from '../../../src/gate/verifier/verifier';
import { readGateOptions } from '../../../src/gate/verifier/read-options';
import { fakeTime } from '../../support/fake-time';
import { sourceOf } from '../../support/generation-source';
import { splitInternals } from '../../support/gate-internals';
import { AUDIENCE, GENERATION, ISSUER, NOW, NOW_MS, token } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

const OTHER = 'https://other.test';

/** A verifier of good tokens of the test issuer, with what a test changes. */
function verifierWith(options: object = {}): GateVerifier & Verifier {
  const single = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
  const defaults = 'issuers' in options ? {} : single;
  const [own, internals] = splitInternals(options);
  const given = { ...defaults, clock: () => NOW_MS, logger: recordingLogger(), ...own };
  const gate = new GateVerifier(readGateOptions(given, internals));
  return Object.assign(gate, {
    known: (raw: string) => gate.verifierOf(raw).known(raw),
    verify: (raw: string) => gate.verifierOf(raw).verify(raw),
  });
}

/** What an action resolves to, or the reason of the refusal. */
async function outcome(action: () => unknown): Promise<unknown> {
  try {
    return await action();
  } catch (error) {
    return (error as AuthError).reason;
  }
}

/** Verifies a token twice, so that it is cached. */
async function seen(verifier: Verifier, raw: string): Promise<unknown> {
  await outcome(() => verifier.verify(raw));
  return outcome(() => verifier.verify(raw));
}

describe('verify()', () => {
  it('resolves to a frozen Auth', async () => {
    const auth = await verifierWith().verify(token());
    expect(auth).toMatchObject({ issuer: ISSUER, clientId: 'pos-17', generation: GENERATION });
    expect(Object.isFrozen(auth)).toBe(true);
  });

  it('checks the signature before any claim where there is one issuer', async () => {
    const verifier = verifierWith();
    expect(await outcome(() => verifier.verify(token({ claims: { iss: OTHER } })))).toBe('wrong_issuer');
    const forged = token({ key: newKey('ES256', testKey().kid), claims: { iss: OTHER } });
    expect(await outcome(() => verifier.verify(forged))).toBe('bad_signature');
  });

  it('lets iss say whose keys decide where there are several', async () => {
    const key = testKey('ES256', 'other');
    const verifier = verifierWith({
      issuers: [
        { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) },
        { issuer: OTHER, audience: AUDIENCE, keys: jwks(key) },
      ],
    });
    expect(await verifier.verify(token())).toMatchObject({ issuer: ISSUER });
    expect(await verifier.verify(token({ key, claims: { iss: OTHER } }))).toMatchObject({ issuer: OTHER });
    expect(await outcome(() => verifier.verify(token({ claims: { iss: OTHER } })))).toBe('unknown_key');
    for (const iss of ['https://third.test', 17, undefined, [ISSUER]]) {
      expect(await outcome(() => verifier.verify(token({ claims: { iss } })))).toBe('wrong_issuer');
    }
  });

  it('waits for the first read of the generations', async () => {
    const verifier = verifierWith({ generationSource: sourceOf() });
    expect(verifier.status().ready).toBe(false);
    expect(await verifier.verify(token())).toMatchObject({ clientId: 'pos-17' });
    expect(verifier.status().ready).toBe(true);
    await verifier.close();
  });

  it('waits for a key that has to be fetched, where no generations are checked too', async () => {
    const fetch = (): Promise<Response> => Promise.resolve(Response.json(jwks(testKey())));
    const jwksUri = 'https://login.test/jwks';
    const verifier = verifierWith({ keys: undefined, jwksUri, fetch, generationClaim: false });
    expect(await verifier.verify(token())).toMatchObject({ clientId: 'pos-17' });
    await verifier.close();
  });

  it('refuses what needs no signature before tokens that wait for theirs', async () => {
    const verifier = verifierWith();
    const order: unknown[] = [];
    const raws = [token(), 'x', token({ header: { alg: 'none' } }), token({ header: { kid: 'made-up' } }), token()];
    await Promise.all(raws.map(async (raw) => order.push(await outcome(() => verifier.verify(raw)))));
    const reasons = ['malformed_token', 'algorithm_not_allowed', 'unknown_key'];
    expect(order).toEqual([...reasons, expect.objectContaining({ clientId: 'pos-17' }), expect.anything()]);
  });

  it('decides the tokens that wait while it is closed', async () => {
    const verifier = verifierWith();
    const forged = token({ key: newKey('ES256', testKey().kid) });
    const decided = Promise.all([token(), forged].map((raw) => outcome(() => verifier.verify(raw))));
    await verifier.close();
    expect(await decided).toEqual([expect.objectContaining({ clientId: 'pos-17' }), 'bad_signature']);
  });

  it('returns no generation where the check is off', async () => {
    const auth = await verifierWith({ generationClaim: false }).verify(token());
    expect(auth).toMatchObject({ clientId: 'pos-17', generation: undefined });
  });
});

describe('known()', () => {
  it('returns the Auth of a token that was verified twice, the same object', async () => {
    const verifier = verifierWith();
    const raw = token();
    expect(verifier.known(raw)).toBeUndefined();
    const auth = await seen(verifier, raw);
    expect(verifier.known(raw)).toBe(auth);
    expect(verifier.known(token({ claims: { jti: 'other' } }))).toBeUndefined();
  });

  it('returns nothing where no token is to be cached', async () => {
    const verifier = verifierWith({ verifiedTokens: 0 });
    const raw = token();
    expect(await seen(verifier, raw)).toMatchObject({ clientId: 'pos-17' });
    expect(verifier.known(raw)).toBeUndefined();
  });

  it('removes a token whose key is gone, also when the key comes back', async () => {
    const keys = { ...jwks(testKey()) };
    const verifier = verifierWith({ keys });
    const raw = token();
    await seen(verifier, raw);
    keys.keys = jwks(testKey('ES256', 'other')).keys;
    expect(verifier.known(raw)).toBeUndefined();
    keys.keys = jwks(testKey()).keys;
    expect(verifier.known(raw)).toBeUndefined();
  });

  it('checks again what changes: times and floors', async () => {
    let nowMs = NOW_MS;
    const verifier = verifierWith({ clock: () => nowMs });
    const [old, fresh] = [token(), token({ claims: { generation: GENERATION + 1 } })];
    await seen(verifier, old);
    await verifier.verify(fresh);
    expect(() => verifier.known(old)).toThrow(new AuthError('superseded'));
    await seen(verifier, fresh);
    nowMs = NOW_MS + 3_540_000 + 10_000;
    expect(() => verifier.known(fresh)).toThrow(new AuthError('expired'));
  });

  it('checks no generation where the check is off', async () => {
    const verifier = verifierWith({ generationClaim: false });
    const raw = token();
    const auth = await seen(verifier, raw);
    expect(verifier.known(raw)).toBe(auth);
  });

  it.each([
    ['with', {}],
    ['without', { generationClaim: false }],
  ])('checks the claims of a refused token again, %s generations: it may be good by now', async (_what, options) => {
    let nowMs = NOW_MS;
    const verifier = verifierWith({ clock: () => nowMs, ...options });
    const raw = token({ claims: { nbf: NOW + 60 } });
    expect(await seen(verifier, raw)).toBe('not_yet_valid');
    expect(() => verifier.known(raw)).toThrow(new AuthError('not_yet_valid'));
    nowMs += 60_000;
    const auth = verifier.known(raw);
    expect(auth).toMatchObject({ clientId: 'pos-17' });
    expect(verifier.known(raw)).toBe(auth);
  });
});

describe('status(), ready() and close()', () => {
  it.each<[string, object, boolean, object]>([
    ['keys that were given', {}, true, { keys: { state: 'fresh' }, generations: { source: 'none' } }],
    ['no check of generations', { generationClaim: false }, true, { keys: { state: 'fresh' } }],
    ['unread generations', { generationSource: sourceOf() }, false, { generations: { source: 'starting' } }],
  ])('with %s', async (_what, options, ready, issuer) => {
    const verifier = verifierWith(options);
    expect(verifier.status()).toMatchObject({ ready, issuers: [{ issuer: ISSUER, ...issuer }] });
    await verifier.close();
  });

  it('are ready with the last issuer, not with the first', async () => {
    const good = { audience: AUDIENCE, keys: jwks(testKey()) };
    const waiting = { ...good, issuer: OTHER, generationSource: sourceOf() };
    const verifier = verifierWith({ issuers: [{ ...good, issuer: ISSUER }, waiting] });
    expect(verifier.status().ready).toBe(false);
    await verifier.ready();
    expect(verifier.status().ready).toBe(true);
    await verifier.close();
  });

  it('follow the generations: fresh once they are read, stale when they are too old', async () => {
    const time = fakeTime(NOW_MS);
    const health = { down: false };
    const generationSource = sourceOf([], health, time);
    const verifier = verifierWith({ generationSource, clock: time.clock, schedule: time.schedule });
    await verifier.ready();
    expect(verifier.status()).toMatchObject({ ready: true, issuers: [{ generations: { source: 'fresh' } }] });
    health.down = true;
    await time.advance(3_600_000);
    expect(verifier.status()).toMatchObject({ ready: false, issuers: [{ generations: { source: 'stale' } }] });
    await verifier.close();
    expect(time.pending).toBe(0);
  });

  it('follow the keys: stale ones are good enough, none and old ones are not', async () => {
    const time = fakeTime(NOW_MS);
    const health = { down: true };
    const fetch = (): Promise<Response> =>
      health.down ? Promise.reject(new Error('down')) : Promise.resolve(Response.json(jwks(testKey())));
    const jwksUri = 'https://login.test/jwks';
    const verifier = verifierWith({ keys: undefined, jwksUri, fetch, clock: time.clock, schedule: time.schedule });
    const state = (): unknown => [verifier.status().ready, verifier.status().issuers[0]?.keys.state];
    expect(state()).toEqual([false, 'starting']);
    health.down = false;
    await time.advance(1_000);
    await verifier.ready();
    expect(state()).toEqual([true, 'fresh']);
    health.down = true;
    time.step(600_000);
    expect(state()).toEqual([true, 'stale']);
    time.step(3_600_000);
    expect(state()).toEqual([false, 'unavailable']);
    await verifier.close();
    expect(time.pending).toBe(0);
  });
});
