import type { Reason } from '../../src';
import { configurationAdvice } from '../../src/token/advice';
import type { AdviceContext } from '../../src/token/advice';
import { PRESETS } from '../../src/token/presets';
import { ISSUER, NOW, token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';

const context: AdviceContext = {
  issuer: ISSUER,
  preset: PRESETS.rfc9068,
  set: (option, value) => `${option}=${value}`,
};

const adviceOn = (reason: Reason, raw: string, changes: Partial<AdviceContext> = {}): string | undefined =>
  configurationAdvice(reason, raw, { ...context, ...changes });

it.each<[string, string, string]>([
  [
    'an encrypted one',
    'a.b.c.d.e',
    'the token is encrypted (JWE, five parts): let the issuer make signed access tokens (JWS)',
  ],
  [
    'an opaque one',
    'c0ffee',
    'the token is opaque, not a JWT: let the issuer make JWT access tokens for this API, or ask it about opaque ones with the option introspection of authenticate()',
  ],
  ['a damaged one', 'a.b.c', 'the token is not a JSON Web Token: compare it with what the token endpoint returned'],
  ['half of one', 'a.b', 'the token is not a JSON Web Token: compare it with what the token endpoint returned'],
])('advises by the form of a token that is no JWT: %s', (_what, raw, advice) => {
  expect(adviceOn('malformed_token', raw)).toBe(advice);
});

const orAdd = 'or let the authorization server add the aud of this API';
const noAudience = 'the token has no aud: let the authorization server add that of this API';

it.each<[Reason, TokenParts, string | undefined]>([
  [
    'wrong_issuer',
    { claims: { iss: 'https://x.test' } },
    `iss is "https://x.test", expected "${ISSUER}": issuer=https://x.test`,
  ],
  [
    'wrong_issuer',
    { claims: { iss: `${ISSUER}/` } },
    `iss is "${ISSUER}/", expected "${ISSUER}" (the slash at the end): issuer=${ISSUER}/`,
  ],
  [
    'wrong_issuer',
    { claims: { iss: 'http://login.test' } },
    `iss is "http://login.test", expected "${ISSUER}" (http and https): issuer=http://login.test`,
  ],
  [
    'wrong_issuer',
    { claims: { iss: 'https://LOGIN.test' } },
    `iss is "https://LOGIN.test", expected "${ISSUER}" (upper and lower case): issuer=https://LOGIN.test`,
  ],
  [
    'wrong_issuer',
    { claims: { iss: `${ISSUER}/a` } },
    `iss is "${ISSUER}/a", expected "${ISSUER}": issuer=${ISSUER}/a`,
  ],
  ['wrong_issuer', { claims: { iss: 17 } }, `iss is 17, expected "${ISSUER}"`],
  ['wrong_audience', { claims: { aud: 'a' } }, `aud is "a": audience=a, ${orAdd}`],
  ['wrong_audience', { claims: { aud: ['a', 'b'] } }, `aud is ["a","b"]: audience=a, ${orAdd}`],
  [
    'wrong_audience',
    { claims: { aud: 'a'.repeat(300) } },
    `aud is "${'a'.repeat(199)}: audience=${'a'.repeat(300)}, ${orAdd}`,
  ],
  ['wrong_audience', { claims: { aud: undefined } }, noAudience],
  ['wrong_audience', { claims: { aud: [] } }, noAudience],
  ['wrong_audience', { claims: { aud: { 0: 'a' } } }, noAudience],
  [
    'generation_missing',
    {},
    'the issuer stamps no generation: generationClaim=iat, or let the authorization server add the claim',
  ],
  [
    'lifetime_too_long',
    { claims: { iat: NOW, exp: NOW + 90_000 } },
    'tokens live for 90000 s: let the issuer shorten that, or maxTokenAgeSeconds=90000',
  ],
  [
    'algorithm_not_allowed',
    { header: { alg: 'HS256' } },
    'alg is "HS256": let the issuer sign with an accepted one, such as RS256',
  ],
  [
    'wrong_type',
    { header: { typ: 'JWT' } },
    'typ is "JWT": let the issuer make access tokens of RFC 9068, or select the preset of its vendor',
  ],
  ['expired', { claims: { exp: 1 } }, undefined],
  ['bad_signature', {}, undefined],
])('advises on %s: %j', (reason, parts, advice) => {
  expect(adviceOn(reason, token(parts))).toBe(advice);
});

describe('a token that looks like that of a vendor', () => {
  const keycloak = token({ header: { typ: 'JWT' }, claims: { typ: 'Bearer', azp: 'pos-17' } });
  const advice = 'this token looks like keycloak (typ is JWT, typ is Bearer, azp): preset=keycloak';

  it.each(['wrong_type', 'invalid_claims', 'generation_missing', 'generation_invalid'] as const)(
    'is advised to have its preset, after %s',
    (reason) => {
      expect(adviceOn(reason, keycloak)).toBe(advice);
    },
  );

  it.each(['wrong_audience', 'expired'] as const)('is not, after %s, which no preset changes', (reason) => {
    expect(adviceOn(reason, keycloak) ?? '').not.toContain('keycloak');
  });

  it('is not where that preset is set', () => {
    expect(adviceOn('generation_missing', keycloak, { preset: PRESETS.keycloak })).toContain('stamps no generation');
  });

  it('is not where it looks like none', () => {
    expect(adviceOn('invalid_claims', token())).toBeUndefined();
  });
});

describe('permissions in claims that the preset does not read', () => {
  const ifPermissions = 'if they are permissions, read them with the option scopes:';
  const roles = { roles: ['till'] };
  it.each<[string, Record<string, unknown>, string, string]>([
    ['realm roles', { realm_access: roles }, '"realm_access.roles"', '["scope","realm_access.roles"]'],
    [
      'roles of a client, but not those of the account pages',
      { resource_access: { account: roles, shop: roles } },
      '"resource_access.shop.roles"',
      '["scope","resource_access.shop.roles"]',
    ],
    [
      'a client with a dot in its name',
      { resource_access: { 'shop.api': roles } },
      '"resource_access.shop.api.roles"',
      '["scope",["resource_access","shop.api","roles"]]',
    ],
    ['permissions, without scope', { scope: undefined, permissions: ['a'] }, '"permissions"', '["permissions"]'],
    [
      'a line break',
      { resource_access: { 'a\nb': roles } },
      '"resource_access.a\\nb.roles"',
      '["scope","resource_access.a\\nb.roles"]',
    ],
  ])('are named after insufficient_scope: %s', (_what, claims, named, from) => {
    expect(adviceOn('insufficient_scope', token({ claims }))).toBe(
      `the token also has names in ${named}: ${ifPermissions} { from: ${from} } of authenticate()`,
    );
  });

  it.each<[string, Record<string, unknown>]>([
    ['there are none', {}],
    ['they are empty', { roles: [], permissions: '', scp: [''] }],
    ['they are something else', { roles: { till: true }, resource_access: ['shop'], realm_access: 'roles' }],
  ])('are not named where %s', (_what, claims) => {
    expect(adviceOn('insufficient_scope', token({ claims }))).toBeUndefined();
  });
});
