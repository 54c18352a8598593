import express from 'express';
import { AuthError, explain, reportOnly } from '../../../../src/gate/index';
import { checksUntil } from '../../../../src/gate/express/diagnosis/explain';
import { dpop, mtls } from '../../../../src/gate/possession/index';
import { boundToken } from '../../../support/dpop';
import { gateApp, getFrom } from '../../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../../support/gate-app';
import { AUDIENCE, GENERATION, ISSUER, NOW_MS, token, NOW } from '../../../support/issuer';
import type { TokenParts } from '../../../support/issuer';
import { jwks, newKey, testKey } from '../../../support/keys';

const CHECKS = ['structure', 'header', 'key', 'signature', 'claims', 'generation', 'scope'];

describe('explain()', () => {
  it('tells every check of an accepted token, and who calls', async () => {
    const { gate } = gateApp();
    const { accepted, status, checks, auth } = await explain(token(), { gate, scopes: ['orders:read'] });
    expect({ accepted, status }).toEqual({ accepted: true, status: undefined });
    expect(checks).toEqual(CHECKS.map((check) => ({ check, outcome: 'passed' })));
    expect(auth?.clientId).toBe('pos-17');
  });

  const unknown = 'the key set has no key with the kid "x": it may be that of another realm or stage (jwksUri)';
  const forged = { key: newKey('ES256', testKey().kid) };
  const rows: readonly [string, string, string, string, TokenParts][] = [
    [
      'no JWT',
      'structure',
      'malformed_token',
      '1 parts instead of 3: opaque tokens need the option opaque; many servers make JWTs once the client asks for the audience or resource of this API',
      {},
    ],
    ['an ID token', 'header', 'wrong_type', 'header typ is "JWT", expected at+jwt', { header: { typ: 'JWT' } }],
    ['an unknown key', 'key', 'unknown_key', unknown, { header: { kid: 'x' } }],
    ['a forged one', 'signature', 'bad_signature', 'The signature of the access token is not valid.', forged],
    ['an expired one', 'claims', 'expired', 'exp was 1799999999 s ago', { claims: { exp: 1 } }],
    [
      'no generation',
      'generation',
      'generation_missing',
      'claim "generation" is null',
      { claims: { generation: null } },
    ],
    ['no scope', 'scope', 'insufficient_scope', 'needs orders:read, has none', { claims: { scope: '' } }],
  ];
  it.each(rows)('names the first check that failed for %s', async (what, failed, reason, detail, parts) => {
    const { gate } = gateApp();
    const raw = what === 'no JWT' ? 'x' : token(parts);
    const explanation = await explain(raw, { gate, scopes: ['orders:read'] });
    const at = CHECKS.indexOf(failed);
    expect(explanation.accepted).toBe(false);
    expect(explanation.status).toBe(failed === 'scope' ? 403 : 401);
    expect(explanation.checks).toEqual(
      CHECKS.map((check, index) => {
        if (index === at) return { check, outcome: 'failed', reason, detail };
        return { check, outcome: index < at ? 'passed' : 'not reached' };
      }),
    );
    expect(explanation.auth?.clientId).toBe(failed === 'scope' ? 'pos-17' : undefined);
  });

  it('reaches neither key nor signature of a token with an unknown key whose claims are refused', async () => {
    const { gate } = gateApp();
    const raw = token({ header: { kid: 'staging' }, claims: { iss: 'https://staging.test' } });
    const { status, checks } = await explain(raw, { gate });
    expect(status).toBe(401);
    expect(checks.map(({ check, outcome }) => `${check} ${outcome}`)).toEqual([
      'structure passed',
      'header passed',
      'key not reached',
      'signature not reached',
      'claims failed',
      'generation not reached',
      'scope not reached',
    ]);
    expect(checks[4]).toMatchObject({
      reason: 'wrong_issuer',
      detail: 'iss is "https://staging.test", expected "https://login.test"; its key is unknown, and was not asked for',
    });
  });

  it('takes any-of as requireScope() does, and no scopes for none', async () => {
    const { gate } = gateApp();
    expect((await explain(token(), { gate, scopes: { anyOf: ['x', 'orders:read'] } })).accepted).toBe(true);
    expect((await explain(token(), { gate, scopes: { anyOf: ['x', 'y'] } })).accepted).toBe(false);
    expect((await explain(token({ claims: { scope: '' } }), { gate })).accepted).toBe(true);
  });

  it('explains a token that a later one has superseded', async () => {
    const { gate } = gateApp();
    await explain(token({ claims: { generation: GENERATION + 1 } }), { gate });
    const { checks } = await explain(token(), { gate });
    expect(checks.filter(({ outcome }) => outcome === 'failed')).toMatchObject([
      { check: 'generation', reason: 'superseded' },
    ]);
  });

  it('selects the keys by iss where there are several issuers: another one fails before everything else', async () => {
    const issuer = (name: string) => ({ issuer: name, audience: AUDIENCE, keys: jwks(testKey()) });
    const several = gateApp({ issuers: [issuer(ISSUER), issuer('https://other.test')] });
    const failed = async ({ gate }: GateApp, claims: object) =>
      (await explain(token({ claims: { ...claims } }), { gate })).checks.find(({ outcome }) => outcome === 'failed');
    const third = { iss: 'https://third.test' };
    expect(await failed(several, third)).toMatchObject({ check: 'structure', reason: 'wrong_issuer' });
    expect(await failed(several, { exp: 1 })).toMatchObject({ check: 'claims' });
    expect(await failed(gateApp(), third)).toMatchObject({ check: 'claims' });
  });

  describe('at a gate that knows sender-constrained tokens', () => {
    const KNOWN = [...CHECKS.slice(0, -1), 'possession', 'scope'];
    const byCertificate = token({ claims: { cnf: { 'x5t#S256': 'x' } } });
    const proofs = dpop({ baseUrl: 'https://api.test' });

    const PLAIN = 'not bound to a key: accepted as a plain bearer token';
    const NEEDS = (name: string) =>
      `bound by ${name} of cnf: each request needs the proof, which cannot be checked without the request`;
    const either = { possession: [proofs, mtls()], possessionRequired: true };
    it.each<[string, string, string, GateAppOptions]>([
      ['any token', PLAIN, token(), { possession: [proofs] }],
      ['any token', PLAIN, token(), { possession: [mtls()] }],
      ['one that is bound by DPoP', NEEDS('jkt'), boundToken(), { possession: [proofs], possessionRequired: true }],
      ['one that is bound to a certificate', NEEDS('x5t#S256'), byCertificate, { possession: [mtls()] }],
      ['one that is bound by DPoP', NEEDS('jkt'), boundToken(), either],
      ['one that is bound to a certificate', NEEDS('x5t#S256'), byCertificate, either],
    ])('accepts %s, and says what a request has to prove: %s (%#)', async (_what, detail, raw, options) => {
      const { gate } = gateApp(options);
      const { accepted, checks } = await explain(raw, { gate, scopes: ['orders:read'] });
      expect({ accepted, checks }).toEqual({
        accepted: true,
        checks: KNOWN.map((check) => ({ check, outcome: 'passed', ...(check === 'possession' && { detail }) })),
      });
    });

    it.each<[string, string, GateAppOptions]>([
      ['one that is not bound', token(), { possession: [proofs], possessionRequired: true }],
      ['one that is not bound', token(), { possession: [mtls()], possessionRequired: true }],
      ['one that is not bound', token(), either],
    ])('refuses %s, as the gate does (%#)', async (_what, raw, options) => {
      const through = gateApp(options);
      const { accepted, status, checks, auth } = await explain(raw, { gate: through.gate, scopes: ['orders:write'] });
      expect([accepted, status, auth?.clientId]).toEqual([false, 401, 'pos-17']);
      expect((await explain(raw, { gate: through.gate })).accepted).toBe(false);
      const detail = 'The access token is not bound to a key of its client: a bound one is expected.';
      const failed = { check: 'possession', outcome: 'failed', reason: 'binding_required', detail };
      expect(checks).toEqual([
        ...KNOWN.slice(0, -2).map((check) => ({ check, outcome: 'passed' })),
        failed,
        { check: 'scope', outcome: 'not reached' },
      ]);
    });
  });

  it('rejects with what is not a refusal, and leaves a gate open that it was given', async () => {
    let isBroken = true;
    const clock = (): number => {
      if (isBroken) throw new RangeError('the clock is broken');
      return NOW_MS;
    };
    const { gate } = gateApp();
    const close = jest.spyOn(gate, 'close');
    expect((await explain(token(), { gate })).accepted).toBe(true);
    expect(close).not.toHaveBeenCalled();
    const broken = gateApp({ generationClaim: false, clock });
    await expect(explain(token(), { gate: broken.gate })).rejects.toThrow('the clock is broken');
    isBroken = false;
    expect((await explain(token(), { gate: broken.gate })).accepted).toBe(true);
  });

  const GATE = 'explain(): option "gate" must be what authenticate() returned';
  it.each<[string, unknown, unknown, string]>([
    ['an empty token', '', {}, 'explain(): expected a token, got ""'],
    ['no token', undefined, {}, 'explain(): expected a token, got undefined'],
    ['an unknown option', 'x', { scope: ['a'] }, 'explain(): unknown option "scope"; did you mean "scopes"?'],
    ['no scopes in a list', 'x', { scopes: [] }, 'explain(): expected at least one scope, got an empty array'],
    ['something else as gate', 'x', { gate: () => {} }, `${GATE}, got a function`],
  ])('refuses %s', async (_what, raw, need, message) => {
    await expect(explain(raw as string, need as object)).rejects.toThrow(new TypeError(message));
  });
});

describe('checksUntil()', () => {
  it.each<[string, AuthError | undefined, readonly string[]]>([
    ['no error', undefined, CHECKS],
    ['an error of a check that every gate has', new AuthError('expired'), CHECKS],
    ['an error of possession', new AuthError('binding_required'), [...CHECKS.slice(0, -1), 'possession', 'scope']],
  ])('names the checks of a gate that is known by %s alone', (_what, error, checks) => {
    expect(checksUntil(error, 1).map(({ check }) => check)).toEqual(checks);
  });
});

describe('advice', () => {
  const OF_KEYCLOAK = { header: { typ: 'JWT' }, claims: { typ: 'Bearer', azp: 'pos-17' } };
  const KEYCLOAK = token(OF_KEYCLOAK);
  /** A key that the issuer does not publish. */
  const STRANGER = newKey('ES256', 'stranger');
  /** Signed by somebody else under the id of a published key. */
  const forged = (parts: TokenParts): string => token({ ...parts, key: newKey('ES256', testKey().kid) });
  const OTHER_AUDIENCE = token({ claims: { aud: 'https://shop.test' } });
  const MESSAGE = 'no token has been accepted so far: check the configuration';

  /** What the gate advised, after these tokens. */
  async function adviceAfter(through: GateApp, ...tokens: readonly string[]): Promise<unknown> {
    for (const raw of tokens) {
      await through.get(raw);
      // The signature of a refused token is checked after the response: here it is waited for.
      await explain(raw, { gate: through.gate });
      await new Promise(setImmediate);
    }
    return through.log.at('warn').map(({ fields, message }) => [message, fields]);
  }

  const have = (party: string, what: string) => ({ otherwise: `have the ${party} ${what}` });
  const server = 'authorization server';
  it.each<[string, string, string, string, object]>([
    [
      'another preset',
      KEYCLOAK,
      'wrong_type',
      'this token looks like keycloak (typ is JWT, typ is Bearer, azp)',
      { option: 'preset', value: 'keycloak' },
    ],
    [
      'another audience',
      OTHER_AUDIENCE,
      'wrong_audience',
      'aud is "https://shop.test"',
      { option: 'audience', value: 'https://shop.test', ...have(server, 'add the aud of this API') },
    ],
    [
      'tokens without a generation',
      token({ claims: { generation: null } }),
      'generation_missing',
      'the claim of the generation is null, or a floor of the client is not a time in ms: have the authorization server stamp a number and name its claim with generationClaim (TILLGATE_GENERATION_CLAIM), or publish times in ms',
      {},
    ],
    [
      'tokens that live too long',
      token({ claims: { exp: NOW + 90_000 } }),
      'lifetime_too_long',
      'tokens live for 90060 s',
      { option: 'maxTokenAgeSeconds', value: 90_060, ...have('issuer', 'shorten that') },
    ],
    [
      'clocks that differ',
      token({ claims: { nbf: NOW + 300 } }),
      'not_yet_valid',
      'compare the clock of this machine with that of the authorization server',
      {},
    ],
  ])('the first refusal that suggests %s is logged with advice, once', async (_what, raw, reason, why, advice) => {
    expect(await adviceAfter(gateApp(), raw, raw, KEYCLOAK)).toEqual([
      [MESSAGE, { issuer: ISSUER, reason, why, ...advice }],
    ]);
  });

  it.each<[string, ...string[]]>([
    ['a caller sent garbage', 'x', token({ header: { alg: 'none' } })],
    ['a token has expired', token({ claims: { exp: NOW - 60 } })],
    ['a signature is forged', forged({})],
    ['a token was accepted before', token(), OTHER_AUDIENCE],
    ['a signature is forged, of a token of another type', forged({ header: { typ: 'JWT' } })],
    ['a signature is forged, of a token that looks like one of Keycloak', forged(OF_KEYCLOAK)],
    ['a key is unknown, of a token that looks like one of Keycloak', token({ ...OF_KEYCLOAK, key: STRANGER })],
    ['a key is unknown, of a token of another issuer', token({ key: STRANGER, claims: { iss: 'https://evil.test' } })],
    ['a key is unknown, of a token for another audience', token({ key: STRANGER, claims: { aud: 'evil' } })],
    ['the signature is cut off', `${KEYCLOAK.slice(0, KEYCLOAK.lastIndexOf('.'))}.AAAA`],
  ])('no advice where %s', async (_what, ...tokens) => {
    expect(await adviceAfter(gateApp(), ...tokens)).toEqual([]);
  });

  it.each([
    ['what suggests nothing', 'x', token({ claims: { exp: 1 } })],
    ['a made-up token', forged(OF_KEYCLOAK)],
  ])('%s does not use the advice up', async (_what, ...tokens) => {
    expect(await adviceAfter(gateApp(), ...tokens, OTHER_AUDIENCE)).toHaveLength(1);
  });

  it('no advice with several issuers: a token does not show which of them is meant', async () => {
    const given = { audience: AUDIENCE, keys: jwks(testKey()) };
    const issuers = [ISSUER, 'https://other.test'].map((issuer) => ({ issuer, ...given }));
    expect(await adviceAfter(gateApp({ issuers }), OTHER_AUDIENCE)).toEqual([]);
  });

  it('the response says nothing of it', async () => {
    const { body } = await gateApp().get(KEYCLOAK).expect(401);
    expect(JSON.stringify(body)).not.toMatch(/keycloak|preset/);
  });

  it('advice is given once for tokens that are refused together', async () => {
    const through = gateApp();
    await Promise.all([OTHER_AUDIENCE, OTHER_AUDIENCE, OTHER_AUDIENCE].map((raw) => through.get(raw)));
    expect(await adviceAfter(through, OTHER_AUDIENCE)).toHaveLength(1);
  });

  it('a gate on trial gives advice too', async () => {
    const through = gateApp();
    const app = express().use(reportOnly(through.gate), (_req, res) => void res.json([]));
    await getFrom(app, OTHER_AUDIENCE).expect(200);
    await explain(OTHER_AUDIENCE, { gate: through.gate });
    await new Promise(setImmediate);
    expect(through.log.at('warn').map(({ message }) => message)).toContain(MESSAGE);
  });
});
