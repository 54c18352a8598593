import { AuthError } from '../../src';
import type { AuthenticateOptions, GenerationSource } from '../../src';
import { judge } from '../../src/express/judge';
import type { Judge } from '../../src/express/judge';
import { readGateOptions } from '../../src/express/read-options';
import { fakeTime } from '../support/fake-time';
import { AUDIENCE, GENERATION, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const OTHER = 'https://other.test';

/** A judge of good tokens of the test issuer, with what a test changes. */
function judgeWith(options: object = {}): Judge {
  const single = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
  const defaults = 'issuers' in options ? {} : single;
  const given = { ...defaults, clock: () => NOW_MS, logger: recordingLogger(), ...options };
  return judge(readGateOptions(given as unknown as AuthenticateOptions));
}

/** What an action answers in the end, or the reason of the refusal. */
async function outcome(action: () => unknown): Promise<unknown> {
  try {
    return await action();
  } catch (error) {
    return (error as AuthError).reason;
  }
}

/** Verifies a token twice, so that its verdict is remembered. */
async function seen(judging: Judge, raw: string): Promise<unknown> {
  await outcome(() => judging.verify(raw));
  return outcome(() => judging.verify(raw));
}

function source(health: { down: boolean }): GenerationSource {
  return {
    read: () => (health.down ? Promise.reject(new Error('down')) : Promise.resolve({ floors: [], nowMs: NOW_MS })),
  };
}

describe('verify()', () => {
  it('answers at once where everything is at hand, and tells every check in order', () => {
    const passed: string[] = [];
    const auth = judgeWith().verify(token(), (check) => passed.push(check));
    expect(auth).not.toBeInstanceOf(Promise);
    expect(auth).toMatchObject({ issuer: ISSUER, clientId: 'pos-17', generation: GENERATION });
    expect(Object.isFrozen(auth)).toBe(true);
    expect(passed).toEqual(['structure', 'header', 'key', 'signature', 'claims', 'generation']);
  });

  it('checks the signature before any claim where there is one issuer', async () => {
    const judging = judgeWith();
    expect(await outcome(() => judging.verify(token({ claims: { iss: OTHER } })))).toBe('wrong_issuer');
    const forged = token({ key: newKey('ES256', testKey().kid), claims: { iss: OTHER } });
    expect(await outcome(() => judging.verify(forged))).toBe('bad_signature');
  });

  it('lets iss say whose keys decide where there are several', async () => {
    const key = testKey('ES256', 'other');
    const judging = judgeWith({
      issuers: [
        { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) },
        { issuer: OTHER, audience: AUDIENCE, keys: jwks(key) },
      ],
    });
    expect(await judging.verify(token())).toMatchObject({ issuer: ISSUER });
    expect(await judging.verify(token({ key, claims: { iss: OTHER } }))).toMatchObject({ issuer: OTHER });
    expect(await outcome(() => judging.verify(token({ claims: { iss: OTHER } })))).toBe('unknown_key');
    for (const iss of ['https://third.test', 17, undefined, [ISSUER]]) {
      expect(await outcome(() => judging.verify(token({ claims: { iss } })))).toBe('wrong_issuer');
    }
  });

  it('waits for the first read of the generations', async () => {
    const judging = judgeWith({ generationSource: source({ down: false }) });
    const verifying = judging.verify(token());
    expect(verifying).toBeInstanceOf(Promise);
    expect(await verifying).toMatchObject({ clientId: 'pos-17' });
    expect(judging.verify(token())).not.toBeInstanceOf(Promise);
    await judging.close();
  });

  it('waits for a key that has to be fetched, where no generations are checked too', async () => {
    const fetch = (): Promise<Response> => Promise.resolve(Response.json(jwks(testKey())));
    const judging = judgeWith({ keys: undefined, jwksUri: 'https://login.test/jwks', fetch, generationClaim: false });
    expect(await judging.verify(token())).toMatchObject({ clientId: 'pos-17' });
    await judging.close();
  });

  it('tells no generation where the check is off', () => {
    const auth = judgeWith({ generationClaim: false }).verify(token());
    expect(auth).toMatchObject({ clientId: 'pos-17', generation: undefined });
  });
});

describe('recall()', () => {
  it('answers what came of a token that was seen twice, the same object', async () => {
    const judging = judgeWith();
    const raw = token();
    expect(judging.recall(raw)).toBeUndefined();
    const auth = await seen(judging, raw);
    expect(judging.recall(raw)).toBe(auth);
    expect(judging.recall(token({ claims: { jti: 'other' } }))).toBeUndefined();
  });

  it('answers nothing where nothing is to be remembered', async () => {
    const judging = judgeWith({ verifiedTokens: 0 });
    const raw = token();
    expect(await seen(judging, raw)).toMatchObject({ clientId: 'pos-17' });
    expect(judging.recall(raw)).toBeUndefined();
  });

  it('forgets a token whose key is gone, also when the key comes back', async () => {
    const keys = { ...jwks(testKey()) };
    const judging = judgeWith({ keys });
    const raw = token();
    await seen(judging, raw);
    keys.keys = jwks(testKey('ES256', 'other')).keys;
    expect(judging.recall(raw)).toBeUndefined();
    keys.keys = jwks(testKey()).keys;
    expect(judging.recall(raw)).toBeUndefined();
  });

  it('checks again what changes: times and floors', async () => {
    let nowMs = NOW_MS;
    const judging = judgeWith({ clock: () => nowMs });
    const [old, fresh] = [token(), token({ claims: { generation: GENERATION + 1 } })];
    await seen(judging, old);
    await judging.verify(fresh);
    expect(() => judging.recall(old)).toThrow(new AuthError('superseded'));
    await seen(judging, fresh);
    nowMs = NOW_MS + 3_540_000 + 10_000;
    expect(() => judging.recall(fresh)).toThrow(new AuthError('expired'));
  });

  it('looks at no generation where the check is off', async () => {
    const judging = judgeWith({ generationClaim: false });
    const raw = token();
    const auth = await seen(judging, raw);
    expect(judging.recall(raw)).toBe(auth);
  });

  it.each([
    ['with', {}],
    ['without', { generationClaim: false }],
  ])('judges the claims of a refused token anew, %s generations: it may be good by now', async (_what, options) => {
    let nowMs = NOW_MS;
    const judging = judgeWith({ clock: () => nowMs, ...options });
    const raw = token({ claims: { nbf: NOW + 60 } });
    expect(await seen(judging, raw)).toBe('not_yet_valid');
    expect(() => judging.recall(raw)).toThrow(new AuthError('not_yet_valid'));
    nowMs += 60_000;
    const auth = judging.recall(raw);
    expect(auth).toMatchObject({ clientId: 'pos-17' });
    expect(judging.recall(raw)).toBe(auth);
  });
});

describe('status(), ready() and close()', () => {
  it.each<[string, object, boolean, object]>([
    ['keys that were given', {}, true, { keys: { state: 'fresh' }, generations: { source: 'none' } }],
    ['no check of generations', { generationClaim: false }, true, { keys: { state: 'fresh' } }],
    [
      'generations that are not read yet',
      { generationSource: source({ down: false }) },
      false,
      { generations: { source: 'starting' } },
    ],
  ])('with %s', async (_what, options, ready, issuer) => {
    const judging = judgeWith(options);
    expect(judging.status()).toMatchObject({ ready, issuers: [{ issuer: ISSUER, ...issuer }] });
    await judging.close();
  });

  it('are ready with the last issuer, not with the first', async () => {
    const good = { audience: AUDIENCE, keys: jwks(testKey()) };
    const waiting = { ...good, issuer: OTHER, generationSource: source({ down: false }) };
    const judging = judgeWith({ issuers: [{ ...good, issuer: ISSUER }, waiting] });
    expect(judging.status().ready).toBe(false);
    await judging.ready();
    expect(judging.status().ready).toBe(true);
    await judging.close();
  });

  it('follow the generations: fresh once they are read, stale when they are too old', async () => {
    const time = fakeTime(NOW_MS);
    const health = { down: false };
    const judging = judgeWith({ generationSource: source(health), clock: time.clock, schedule: time.schedule });
    await judging.ready();
    expect(judging.status()).toMatchObject({ ready: true, issuers: [{ generations: { source: 'fresh' } }] });
    health.down = true;
    await time.advance(3_600_000);
    expect(judging.status()).toMatchObject({ ready: false, issuers: [{ generations: { source: 'stale' } }] });
    await judging.close();
    expect(time.pending).toBe(0);
  });

  it('follow the keys: stale ones are good enough, none and old ones are not', async () => {
    const time = fakeTime(NOW_MS);
    const health = { down: true };
    const fetch = (): Promise<Response> =>
      health.down ? Promise.reject(new Error('down')) : Promise.resolve(Response.json(jwks(testKey())));
    const jwksUri = 'https://login.test/jwks';
    const judging = judgeWith({ keys: undefined, jwksUri, fetch, clock: time.clock, schedule: time.schedule });
    const state = (): unknown => [judging.status().ready, judging.status().issuers[0]?.keys.state];
    expect(state()).toEqual([false, 'starting']);
    health.down = false;
    await time.advance(1_000);
    await judging.ready();
    expect(state()).toEqual([true, 'fresh']);
    health.down = true;
    time.step(600_000);
    expect(state()).toEqual([true, 'stale']);
    time.step(3_600_000);
    expect(state()).toEqual([false, 'unavailable']);
    await judging.close();
    expect(time.pending).toBe(0);
  });
});
