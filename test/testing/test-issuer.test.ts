import { createHmac, createPublicKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import express from 'express';
import request from 'supertest';
import { authenticate } from '../../src/gate';
import { ALGORITHMS } from '../../src/gate/token/signature';
import { createTestIssuer } from '../../src/testing/index';
import type { TestIssuerOptions, TestToken } from '../../src/testing/index';
import { guardedApp } from './guarded-app';
import { settle } from '../support/fake-time';

const scope = 'orders:read';

/** An issuer, and an app with its gate. */
function scene() {
  const issuer = createTestIssuer();
  return { issuer, ...guardedApp(issuer.options) };
}

describe('token()', () => {
  const issuer = createTestIssuer();
  const { call, outcome } = guardedApp(issuer.options);

  it('is good by default, for one client', async () => {
    const response = await call(issuer.token({ scope }));
    expect([response.status, response.body]).toEqual([200, { caller: 'test-client' }]);
  });

  it.each<[string, TestToken, string]>([
    ['for a client', { clientId: 'till-1' }, '200'],
    ['that lives for an hour', { lifetimeSeconds: 3_600 }, '200'],
    ['of a generation', { clientId: 'numbered', generation: 7 }, '200'],
    ['without the scope', { scope: 'orders:write' }, '403 insufficient_scope'],
    ['without any scope', { scope: undefined }, '403 insufficient_scope'],
    ['that has expired', { expired: true }, '401 expired'],
    ['that is not valid yet', { notYetValid: true }, '401 not_yet_valid'],
    ['of another issuer', { issuer: 'https://elsewhere.test' }, '401 wrong_issuer'],
    ['for another audience', { audience: 'https://elsewhere.test' }, '401 wrong_audience'],
    ['for several audiences', { audience: ['https://elsewhere.test', 'https://api.test'] }, '200'],
    ['signed with a foreign key', { foreignKey: true }, '401 bad_signature'],
    ['with an unknown key id', { header: { kid: 'unknown' } }, '401 unknown_key'],
    ['that is not signed', { algorithm: 'none' }, '401 malformed_token'],
    ['signed with the public key as a secret', { algorithm: 'HS256' }, '401 algorithm_not_allowed'],
    ['that lives too long', { lifetimeSeconds: 90_000 }, '401 lifetime_too_long'],
    ['that is superseded', { superseded: true, clientId: 'till-2' }, '401 superseded'],
    ['of no generation', { claims: { generation: null } }, '401 generation_missing'],
    ['of another type', { header: { typ: 'JWT' } }, '401 wrong_type'],
    ['without a claim', { claims: { jti: undefined } }, '401 invalid_claims'],
  ])('makes one %s', async (_what, token, expected) => {
    expect(await outcome(issuer.token({ scope, ...token }))).toBe(expected);
  });

  it('omits only the signature of an unsigned token', () => {
    const [header = '', payload = '', signature = ''] = issuer.token({ algorithm: 'none' }).split('.');
    expect(signature).toBe('');
    expect(parse(header)).toEqual({ alg: 'none', typ: 'at+jwt', kid: issuer.keyId });
    expect(parse(payload)).toMatchObject({ iss: issuer.issuer, aud: issuer.audience, client_id: 'test-client' });
  });

  it('uses the published public key as the HMAC secret', () => {
    const { keys } = issuer.options as unknown as { keys: { keys: [JsonWebKey] } };
    const secret = createPublicKey({ key: keys.keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    const [header = '', payload = '', signature] = issuer.token({ algorithm: 'HS256' }).split('.');
    expect(signature).toBe(createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url'));
  });

  it.each<[object, string]>([
    [{ scopes: 'a' }, 'token(): unknown option "scopes"; did you mean "scope"?'],
    [{ client_id: 'a' }, 'token(): unknown option "client_id"; did you mean "clientId"?'],
    [{ expird: true }, 'token(): unknown option "expird"; did you mean "expired"?'],
    [
      { scope: ['a', 'b'] },
      'token(): option "scope" must be a string of space-separated scopes (claims: { scope: ... } takes anything), got an array of 2',
    ],
    [{ clientId: '' }, 'token(): option "clientId" must be a non-empty string, got ""'],
    [{ expired: 1 }, 'token(): option "expired" must be true or false, got 1'],
    [
      { algorithm: 'ES256' },
      'token(): option "algorithm" must be none or HS256 (createTestIssuer({ algorithm }) chooses what good tokens are signed with), got "ES256"',
    ],
  ])('refuses %j', (token, message) => {
    expect(() => issuer.token(token as TestToken)).toThrow(new TypeError(message));
  });
});

describe('createTestIssuer()', () => {
  // Each form of signature once, and each length of hash: an RSA key takes its time.
  it.each(['RS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const)(
    'signs with %s',
    async (algorithm) => {
      const issuer = createTestIssuer({ algorithm });
      const { outcome } = guardedApp({ ...issuer.options, algorithms: [algorithm] });
      expect(await outcome(issuer.token({ scope }))).toBe('200');
    },
  );

  it('uses its issuer and audience in its tokens', () => {
    const issuer = createTestIssuer({ issuer: 'https://one.test', audience: 'https://two.test' });
    expect(issuer.options).toMatchObject({ issuer: 'https://one.test', audience: 'https://two.test' });
    expect(parse(issuer.token().split('.')[1])).toMatchObject({ iss: 'https://one.test', aud: 'https://two.test' });
  });

  it.each<[object, string]>([
    [{ audiences: 'a' }, 'createTestIssuer(): unknown option "audiences"; did you mean "audience"?'],
    [{ issuer: '' }, 'createTestIssuer(): option "issuer" must be a non-empty string, got ""'],
    [{ clock: 5 }, 'createTestIssuer(): option "clock" must be a function, got 5'],
    [
      { algorithm: 'HS256' },
      `createTestIssuer(): option "algorithm" must be one of ${ALGORITHMS.join(', ')}, got "HS256"; did you mean "RS256"?`,
    ],
  ])('refuses %j', (options, message) => {
    expect(() => createTestIssuer(options as TestIssuerOptions)).toThrow(new TypeError(message));
  });
});

describe('bump()', () => {
  it('has earlier tokens refused with the very next request, without a newer token', async () => {
    const { issuer, outcome } = scene();
    const [till, kiosk] = [issuer.token({ scope, clientId: 'till' }), issuer.token({ scope, clientId: 'kiosk' })];
    expect(await outcome(till)).toBe('200');
    const generation = issuer.bump('till');
    expect(await outcome(till)).toBe('401 superseded');
    expect(await outcome(kiosk)).toBe('200');
    expect(await outcome(issuer.token({ scope, clientId: 'till' }))).toBe('200');
    expect(issuer.bump('till')).toBeGreaterThan(generation);
  });

  it('affects a request in the same event loop turn', async () => {
    const { issuer, gate, outcome } = scene();
    const token = issuer.token({ scope });
    expect(await outcome(token)).toBe('200');
    issuer.bump();
    // Begins synchronously: a gate that had to read its source first would still accept the token.
    const decision = await new Promise((resolve) => {
      const res = { setHeader() {}, getHeader() {}, writeHead() {}, end: () => resolve('refused'), once() {}, on() {} };
      const headers = { authorization: `Bearer ${token}` };
      void gate({ method: 'GET', url: '/', headers, headersDistinct: {} } as never, res as never, () =>
        resolve('accepted'),
      );
    });
    expect(decision).toBe('refused');
  });

  it('needs a newer token where the gate was given no source', async () => {
    const issuer = createTestIssuer();
    const { outcome } = guardedApp({ ...issuer.options, generationSource: undefined });
    const before = issuer.token({ scope });
    expect(await outcome(before)).toBe('200');
    issuer.bump();
    expect(await outcome(before)).toBe('200');
    expect(await outcome(issuer.token({ scope }))).toBe('200');
    expect(await outcome(before)).toBe('401 superseded');
  });

  it('increases by one while the clock is stopped', () => {
    const issuer = createTestIssuer({ clock: () => 1_800_000_000_000.5 });
    expect([issuer.bump(), issuer.bump()]).toEqual([1_800_000_000_000, 1_800_000_000_001]);
  });
});

function parse(part = ''): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

describe('rotate() and removeKey()', () => {
  it('sign with a new key that the gate knows immediately, next to the earlier one', async () => {
    const { issuer, outcome, gate } = scene();
    const [first, before] = [issuer.keyId, issuer.token({ scope })];
    expect(await outcome(before)).toBe('200');
    const second = issuer.rotate();
    expect([issuer.keyId, second === first]).toEqual([second, false]);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
    expect(await outcome(before)).toBe('200');
    expect(gate.status().issuers[0]?.keys).toEqual({ state: 'fresh', keys: 2 });
  });

  it('remove every key that no longer signs', async () => {
    const { issuer, outcome } = scene();
    const first = issuer.token({ scope });
    issuer.rotate();
    const second = issuer.token({ scope });
    issuer.rotate();
    expect([await outcome(first), await outcome(second)]).toEqual(['200', '200']);
    issuer.removeKey();
    expect([await outcome(first), await outcome(second)]).toEqual(['401 unknown_key', '401 unknown_key']);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it('remove one key by its id', async () => {
    const { issuer, outcome } = scene();
    const [firstKey, first] = [issuer.keyId, issuer.token({ scope })];
    issuer.rotate();
    const second = issuer.token({ scope });
    issuer.rotate();
    issuer.removeKey(firstKey);
    expect([await outcome(first), await outcome(second)]).toEqual(['401 unknown_key', '200']);
  });

  it('never leave the issuer without a key', () => {
    const issuer = createTestIssuer();
    expect(() => issuer.removeKey()).toThrow('removeKey(): the only key is the one that signs; rotate() first');
    expect(() => issuer.removeKey(issuer.keyId)).toThrow('removeKey(): this key signs; rotate() first');
    const first = issuer.keyId;
    issuer.rotate();
    expect(() => issuer.removeKey('k1')).toThrow(`removeKey(): no key "k1" is published; known are ${first}`);
  });

  it('keep the key set in the options current', () => {
    const issuer = createTestIssuer();
    const { keys } = issuer.options;
    issuer.rotate();
    expect(keys).toMatchObject({ keys: [{ alg: 'ES256', use: 'sig' }, { kid: issuer.keyId }] });
    expect(JSON.stringify(keys)).not.toContain('"d"');
  });
});

const HOUR_MS = 3_600_000;

describe('the clock of a test issuer', () => {
  it('lets a token expire', async () => {
    const { issuer, outcome } = scene();
    const token = issuer.token({ scope, lifetimeSeconds: 60 });
    expect(await outcome(token)).toBe('200');
    issuer.clock.advance(80_000);
    expect(await outcome(token)).toBe('401 expired');
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it.each([
    ['a day ahead', (now: number) => now + 24 * HOUR_MS],
    ['years back', () => Date.parse('2005-01-01T00:00:00Z')],
  ])('can be set %s while a gate is running', async (_where, timeFrom) => {
    const { issuer, gate, outcome } = scene();
    expect(await outcome(issuer.token({ scope }))).toBe('200');
    issuer.clock.set(timeFrom(issuer.clock.now()));
    const token = issuer.token({ scope });
    expect(await outcome(token)).toBe('200');
    expect(gate.status().ready).toBe(true);
    issuer.bump();
    expect(await outcome(token)).toBe('401 superseded');
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it('runs until it is set, is stopped from then on, and can be advanced in both cases', () => {
    let wall = 1_800_000_000_000;
    const { clock } = createTestIssuer({ clock: () => wall });
    expect(clock.now()).toBe(1_800_000_000_000);
    clock.advance(500);
    wall += 1_000;
    expect(clock.now()).toBe(1_800_000_001_500);
    clock.set(5_000);
    wall += 1_000;
    clock.advance(250);
    expect(clock.now()).toBe(5_250);
  });

  it.each<[string, (clock: ReturnType<typeof createTestIssuer>['clock']) => void, string]>([
    ['advance(-1)', (clock) => clock.advance(-1), 'expected milliseconds from 0 on, got -1; set() goes back'],
    ['advance(NaN)', (clock) => clock.advance(NaN), 'expected milliseconds from 0 on, got NaN; set() goes back'],
    ['set(a date)', (clock) => clock.set(new Date() as never), 'expected milliseconds since the epoch, got an object'],
  ])('refuses %s', (call, move, message) => {
    expect(() => move(createTestIssuer().clock)).toThrow(new TypeError(`clock.${call.split('(')[0]}(): ${message}`));
  });

  it('can be advanced right after a gate was made', async () => {
    const { issuer, outcome } = scene();
    issuer.clock.advance(600_000);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it('fires, in order, the timers that are due by then', async () => {
    const { clock, options } = createTestIssuer({ clock: () => 0 });
    const ran: string[] = [];
    options.schedule?.(() => ran.push('late'), 2_000);
    options.schedule?.(() => ran.push('early'), 1_000);
    options.schedule?.(() => ran.push('cancelled'), 1_000).cancel();
    options.schedule?.(() => ran.push('never'), 60_000).cancel();
    clock.advance(999);
    expect(ran).toEqual([]);
    clock.advance(1_500);
    await settle();
    expect(ran).toEqual(['early', 'late']);
    clock.advance(HOUR_MS);
    await settle();
    expect(ran).toEqual(['early', 'late']);
  });
});

describe('a gate of a test issuer', () => {
  /** What it has written to the console about a request without a token. */
  async function written(options: TestIssuerOptions): Promise<readonly unknown[]> {
    const lines: unknown[] = [];
    const spies = (['info', 'warn', 'error'] as const).map((level) =>
      jest.spyOn(console, level).mockImplementation((...line: unknown[]) => void lines.push(line[0])),
    );
    const gate = authenticate(createTestIssuer(options).options);
    const { status } = await request(express().use(gate)).get('/orders');
    expect(status).toBe(401);
    for (const spy of spies) spy.mockRestore();
    return lines;
  }

  it('logs nothing by default, and each refusal with log', async () => {
    expect(await written({})).toEqual([]);
    expect(await written({ log: true })).toEqual([expect.stringContaining('missing_token')]);
  });
});
