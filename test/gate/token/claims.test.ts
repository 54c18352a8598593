import { AuthError } from '../../../src/gate/core/errors';
import type { ClaimRules } from '../../../src/gate/token/claims';
import { checkClaims } from '../../../src/gate/verifier/steps';
import { PRESETS } from '../../../src/gate/token/presets';
import { AUDIENCE, goodClaims, ISSUER, NOW, NOW_MS } from '../../support/issuer';
import type { Members } from '../../support/issuer';

const NO_CLIENT = 'the client is not one of the accepted ones';
const TOO_LONG = 'exp - iat is 86401 s, at most 86400 s are accepted';
const RULES: ClaimRules = {
  preset: PRESETS.rfc9068,
  issuer: ISSUER,
  audiences: [AUDIENCE],
  clientIds: undefined,
  clockToleranceMs: 10_000,
  maxTokenAgeMs: 86_400_000,
  confirmations: [],
};
const OTHER = 'https://other.test';
const LONGER = `${AUDIENCE}.evil.test`;
const audIs = (got: string, expected: string): string => `aud is "${got}", expected "${expected}"`;
const unproven = (name: string): string =>
  `cnf member "${name}" is not proven: the option possession lists no proof for it`;
const NO_METHOD = 'cnf has no member: the option possession lists no proof for it';
type Refused = [what: string, changes: Members, rules: Partial<ClaimRules>, reason: string, detail: string | undefined];
const WITH_DPOP: Partial<ClaimRules> = { confirmations: ['jkt'] };
const KEYCLOAK: Partial<ClaimRules> = { preset: PRESETS.keycloak };
const COGNITO: Partial<ClaimRules> = { preset: PRESETS.cognito, audiences: false };

/** The claims as they are read, or the reason of the refusal with what operators are told. */
function outcome(changes: Record<string, unknown>, rules: Partial<ClaimRules> = {}): unknown {
  try {
    return checkClaims({ ...goodClaims(), ...changes }, { ...RULES, ...rules }, NOW_MS);
  } catch (error) {
    const { reason, privateDetail } = error as AuthError;
    return [reason, privateDetail];
  }
}

describe('checkClaims()', () => {
  it('reads what the rest of the gate needs, times in ms', () => {
    const claims = { ...goodClaims(), nbf: NOW - 0.5 };
    expect(outcome({ nbf: NOW - 0.5 })).toEqual({
      claims,
      clientId: 'pos-17',
      subject: 'pos-17',
      tokenId: 'c0ffee',
      audiences: [AUDIENCE],
      issuedAtMs: NOW_MS - 60_000,
      expiresAtMs: NOW_MS + 3_540_000,
      acceptedFromMs: NOW_MS - 10_500,
      acceptedUntilMs: NOW_MS + 3_550_000,
    });
    expect(outcome({})).toMatchObject({ acceptedFromMs: -Infinity });
  });

  it.each<[string, unknown, string]>([
    ['iss', undefined, 'iss is missing'],
    ['iss', 17, 'iss is not a string'],
    ['iss', null, 'iss is not a string'],
    ['iss', [ISSUER], 'iss is not a string'],
    ['exp', undefined, 'exp is missing'],
    ['exp', String(NOW + 60), 'exp is not a number'],
    ['exp', null, 'exp is not a number'],
    ['exp', Infinity, 'exp is not a number'],
    ['exp', NaN, 'exp is not a number'],
    ['nbf', String(NOW), 'nbf is not a number'],
    ['nbf', -Infinity, 'nbf is not a number'],
    ['iat', undefined, 'iat is missing'],
    ['iat', String(NOW), 'iat is not a number'],
    ['sub', undefined, 'sub is missing'],
    ['sub', 17, 'sub is not a string'],
    ['jti', undefined, 'jti is missing'],
    ['jti', 17, 'jti is not a string'],
    ['client_id', undefined, 'client_id is missing'],
    ['client_id', 17, 'client_id is not a string'],
    ['client_id', '', 'the client id is empty'],
    ['cnf', 'jkt', 'cnf is not an object'],
    ['cnf', null, 'cnf is not an object'],
    ['cnf', [{ jkt: 'x' }], 'cnf is not an object'],
    ['aud', undefined, 'aud is missing'],
    ['aud', 17, 'aud is neither a string nor an array of strings'],
    ['aud', null, 'aud is neither a string nor an array of strings'],
    ['aud', { 0: AUDIENCE }, 'aud is neither a string nor an array of strings'],
    ['aud', [AUDIENCE, 17], 'aud is neither a string nor an array of strings'],
  ])('refuses %s: %p, and tells operators that %s', (name, value, privateDetail) => {
    expect(outcome({ [name]: value })).toEqual(['invalid_claims', privateDetail]);
  });

  it('takes the client id from the first claim of the preset that is there, and tells which ones it looked for', () => {
    const bearer = { typ: 'Bearer' };
    expect(outcome({ ...bearer, azp: 'first' }, KEYCLOAK)).toMatchObject({ clientId: 'first' });
    expect(outcome({ ...bearer, azp: undefined }, KEYCLOAK)).toMatchObject({ clientId: 'pos-17' });
    expect(outcome({ ...bearer, azp: null }, KEYCLOAK)).toEqual(['invalid_claims', 'azp is not a string']);
    const none = outcome({ ...bearer, client_id: undefined }, KEYCLOAK);
    expect(none).toEqual(['invalid_claims', 'azp or client_id is missing']);
  });

  it('asks for the value that the preset fixes', () => {
    expect(outcome({ typ: 'ID' }, KEYCLOAK)).toEqual([
      'invalid_claims',
      expect.stringMatching(/^claim typ is "ID", expected "Bearer"/),
    ]);
    expect(outcome({}, KEYCLOAK)).toEqual(['invalid_claims', expect.stringMatching(/^claim typ is missing/)]);
    const bound = outcome({ cnf: { jkt: 'x' } }, { ...COGNITO, confirmations: ['jkt'] });
    expect(bound).toEqual(['invalid_claims', expect.stringMatching(/^claim token_use is missing/)]);
  });

  it('takes the type DPoP of Keycloak with cnf.jkt alone, which a proof has to match then', () => {
    const withDpop = { ...KEYCLOAK, confirmations: ['jkt'] as const };
    const cnf = { jkt: 'thumbprint' };
    expect(outcome({ typ: 'DPoP', cnf }, withDpop)).toMatchObject({ clientId: 'pos-17' });
    expect(outcome({ typ: 'Bearer', cnf }, withDpop)).toMatchObject({ clientId: 'pos-17' });
    expect(outcome({ typ: 'DPoP', cnf }, KEYCLOAK)).toEqual(['sender_constrained', unproven('jkt')]);
    const notBearer = ['invalid_claims', expect.stringMatching(/^claim typ is .*, expected "Bearer"/)];
    for (const other of [undefined, {}, { 'x5t#S256': 'thumbprint' }]) {
      expect(outcome({ typ: 'DPoP', cnf: other }, withDpop)).toEqual(notBearer);
    }
    for (const typ of ['ID', 'Refresh', 'dpop', undefined]) expect(outcome({ typ, cnf }, withDpop)).toEqual(notBearer);
    expect(outcome({ typ: 'DPoP', cnf }, { confirmations: ['jkt'] })).toMatchObject({ clientId: 'pos-17' });
  });

  it.each<[string, Record<string, unknown>, Partial<ClaimRules>, string, string | undefined]>([
    ['another issuer', { iss: OTHER }, {}, 'wrong_issuer', `iss is "${OTHER}", expected "${ISSUER}"`],
    ['another audience', { aud: ['x', 'y'] }, {}, 'wrong_audience', audIs('x y', AUDIENCE)],
    ['none in common', { aud: [OTHER] }, { audiences: ['x', 'y'] }, 'wrong_audience', audIs(OTHER, 'x or y')],
    ['an audience that begins alike', { aud: [LONGER] }, {}, 'wrong_audience', audIs(LONGER, AUDIENCE)],
    ['no aud', { aud: undefined, typ: 'Bearer' }, KEYCLOAK, 'wrong_audience', `aud is missing, expected "${AUDIENCE}"`],
    ['a client that is not accepted', {}, { clientIds: ['x'] }, 'wrong_audience', NO_CLIENT],
    ['no accepted client at all', {}, { clientIds: [] }, 'wrong_audience', NO_CLIENT],
    ['an iat ahead', { iat: NOW + 10.001 }, {}, 'not_yet_valid', 'iat is 11 s ahead'],
    ['an nbf ahead', { nbf: NOW + 10.001 }, {}, 'not_yet_valid', 'nbf is 11 s ahead'],
    ['an exp in the past', { exp: NOW - 10 }, {}, 'expired', 'exp was 10 s ago'],
    ['an exp that is now', { exp: NOW }, { clockToleranceMs: 0 }, 'expired', 'exp was 0 s ago'],
    ['a long life', { iat: NOW, exp: NOW + 86_400.001 }, {}, 'lifetime_too_long', TOO_LONG],
    ['a long life after an nbf', { iat: NOW, nbf: NOW, exp: NOW + 86_400.001 }, {}, 'lifetime_too_long', TOO_LONG],
    ...['jkt', 'x5t#S256', 'jwk', 'jwe', 'jku', 'kid', 'osc', 'x'].map((name): Refused => {
      return [`a token bound by ${name} only`, { cnf: { [name]: 'x' } }, {}, 'sender_constrained', unproven(name)];
    }),
    ...['x5t#S256', 'jwk', 'jwe', 'jku', 'kid', 'osc'].flatMap((name): Refused[] =>
      [
        { jkt: 'x', [name]: 'y' },
        { [name]: {}, 'urn:x': 1, jkt: 'x' },
      ].map((cnf) => {
        return [`a second binding by ${name}`, { cnf }, WITH_DPOP, 'sender_constrained', unproven(name)];
      }),
    ),
    [
      'a bound token whose method is not registered',
      { cnf: { X5T: 'y' } },
      WITH_DPOP,
      'sender_constrained',
      unproven('X5T'),
    ],
    ['a bound token that names no method', { cnf: {} }, {}, 'sender_constrained', NO_METHOD],
    ['a proven method without a value', { cnf: { jkt: '', x: 1 } }, WITH_DPOP, 'invalid_claims', 'cnf.jkt is empty'],
    ...[1, ['x'], { x: 1 }].map((jkt): Refused => {
      return [
        'a thumbprint that is not a string',
        { cnf: { jkt } },
        WITH_DPOP,
        'invalid_claims',
        'jkt is not a string',
      ];
    }),
    ['an expired token that is bound', { exp: NOW - 10, cnf: { jkt: 'x' } }, {}, 'expired', 'exp was 10 s ago'],
  ])('refuses %s', (_what, changes, rules, reason, privateDetail) => {
    expect(outcome(changes, rules)).toEqual([reason, privateDetail]);
  });

  it.each<[string, Record<string, unknown>, Partial<ClaimRules>]>([
    ['no aud where none is asked for', { aud: undefined, token_use: 'access' }, COGNITO],
    ['any aud where none is asked for', { aud: ['x'], token_use: 'access' }, COGNITO],
    ['one audience of two', { aud: ['x', AUDIENCE] }, {}],
    ['a string, among several expected', {}, { audiences: [OTHER, AUDIENCE] }],
    ['an array, several expected, one in common', { aud: [OTHER, AUDIENCE] }, { audiences: ['x', AUDIENCE] }],
    ['a fraction of a second before its end', { exp: NOW + 0.5 }, { clockToleranceMs: 0 }],
    ['a client that is accepted', {}, { clientIds: ['x', 'pos-17'] }],
    ['an iat at the tolerance', { iat: NOW + 10 }, {}],
    ['a bound token whose proof is checked later', { cnf: { jkt: 'x' } }, { confirmations: ['jkt'] }],
    ['members of cnf that are not registered, of any type', { cnf: { a: 1, jkt: 'x', x5t: [] } }, WITH_DPOP],
    ['one with two bindings', { cnf: { jkt: 'x', 'x5t#S256': 'y' } }, { confirmations: ['jkt', 'x5t#S256'] }],
    ['the longest life', { iat: NOW, exp: NOW + 86_400 }, {}],
  ])('accepts %s', (_what, changes, rules) => {
    expect(outcome(changes, rules)).toMatchObject({ clientId: 'pos-17' });
  });
});

describe('the times of a token, to the millisecond', () => {
  const claims = { ...goodClaims(), iat: NOW - 60, nbf: NOW, exp: NOW + 60 };

  it.each([
    ['nbf', NOW * 1000 - 10_001, 'not_yet_valid'],
    ['nbf', NOW * 1000 - 10_000, undefined],
    ['exp', NOW * 1000 + 69_999, undefined],
    ['exp', NOW * 1000 + 70_000, 'expired'],
  ])('%s at %i with a tolerance of 10 s: %p', (_claim, nowMs, reason) => {
    const check = (): unknown => checkClaims(claims, RULES, nowMs);
    if (reason === undefined) expect(check()).toMatchObject({ acceptedFromMs: NOW * 1000 - 10_000 });
    else expect(check).toThrow(new AuthError(reason as 'expired'));
  });

  it('refuses a token that is both expired and not valid yet as expired', () => {
    const both = { ...claims, nbf: NOW + 60, exp: NOW - 20 };
    expect(() => checkClaims(both, RULES, NOW * 1000)).toThrow(new AuthError('expired'));
  });
});
