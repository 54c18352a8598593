import { PRESETS } from '../../../../src/gate/token/presets';
import type { PresetName } from '../../../../src/gate/token/presets';
import { configurationAdvice } from '../../../../src/gate/express/diagnosis/advice';
import { recognizeIssuer, recognizeToken } from '../../../../src/gate/express/diagnosis/recognition';
import { wordAdvice } from '../../../../src/cli/commands/explain';
import type { AdviceContext } from '../../../../src/gate/express/diagnosis/advice';
import type { Reason } from '../../../../src/gate/index';
import type { ScopeRule } from '../../../../src/gate/token/scopes';
import { ISSUER, NOW, token } from '../../../support/issuer';
import type { TokenParts } from '../../../support/issuer';

describe('the preset that a token looks like', () => {
  type Members = Readonly<Record<string, unknown>>;

  const fromShape = (claims: Members, header: Members = {}): unknown => recognizeToken({ claims, header });

  it.each<[PresetName, readonly string[], Members, Members?]>([
    ['keycloak', ['typ is JWT', 'typ is Bearer', 'azp'], { typ: 'Bearer', azp: 'pos' }, { typ: 'jwt' }],
    ['keycloak', ['typ is at+jwt', 'typ is Bearer', 'azp'], { typ: 'Bearer', azp: 'pos' }, { typ: 'at+jwt' }],
    ['keycloak', ['typ is DPoP', 'azp'], { typ: 'DPoP', azp: 'pos' }],
    ['cognito', ['token_use is access', 'client_id'], { token_use: 'access', client_id: 'pos' }],
    ['auth0', ['gty is client-credentials'], { gty: 'client-credentials' }],
    ['okta', ['cid', 'scp is an array'], { cid: 'pos', scp: ['a'] }],
    ['entra', ['tid', 'azp'], { tid: '1', azp: 'pos' }],
    ['entra', ['tid', 'appid'], { tid: '1', appid: 'pos' }],
    ['openiddict', ['oi_prst'], { oi_prst: ['pos'] }],
    ['openiddict', ['oi_tkn_id'], { oi_tkn_id: '1' }],
    ['identityserver', ['typ is at+jwt', 'scope is an array'], { scope: ['a'] }, { typ: 'AT+JWT' }],
    ['identityserver', ['typ is at+jwt', 'client_generation'], { client_generation: '1' }, { typ: 'at+jwt' }],
    ['hydra', ['typ is JWT', 'client_id', 'scp is an array'], { client_id: 'pos', scp: [] }, { typ: 'JWT' }],
  ])('recognizes %s by %j, and not when one of them is missing', (preset, signs, claims, header = {}) => {
    expect(fromShape(claims, header)).toEqual({ preset, signs });
    for (const name of Object.keys(claims)) expect(fromShape({ ...claims, [name]: undefined }, header)).toBeUndefined();
    if (header['typ'] !== undefined) expect(fromShape(claims)).toBeUndefined();
  });

  it.each<[string, Members, Members]>([
    ['another value', { token_use: 'id', client_id: 'pos' }, {}],
    ['token_use of an issuer that is not Cognito', { token_use: 'access', client_id: 'pos', iss: ISSUER }, {}],
    ['a text in the place of an array', { cid: 'pos', scp: 'a' }, {}],
    ['an issuer that is not a text', { iss: ['https://shop.auth0.com/'] }, {}],
  ])('does not take %s for a sign', (_what, claims, header) => {
    expect(fromShape(claims, header)).toBeUndefined();
  });

  it.each<[string, PresetName | undefined]>([
    ['https://sso.test/realms/shop', 'keycloak'],
    ['https://sso.test/realms/shop/', undefined],
    ['https://shop.eu.auth0.com/', 'auth0'],
    ['https://shop.auth0.com.evil.test/', undefined],
    ['https://shop.okta.com', 'okta'],
    ['https://shop.oktapreview.com/oauth2/default', 'okta'],
    ['https://shop.okta.community', undefined],
    ['https://login.microsoftonline.com/1/v2.0', 'entra'],
    ['https://sts.windows.net/1/', 'entra'],
    ['https://cognito-idp.eu-central-1.amazonaws.com/pool', 'cognito'],
    ['https://auth.pingone.eu/1/as', 'ping'],
    ['https://login.test', undefined],
  ])('knows the vendor of the issuer %s: %s', (issuer, preset) => {
    const recognition = preset && { preset, signs: ['iss is a URL of that vendor'] };
    expect(recognizeIssuer(issuer)).toEqual(recognition);
    expect(fromShape({ iss: issuer })).toEqual(recognition);
  });

  it.each<[string, PresetName | undefined]>([
    ['https://sso.test/auth/protocol/openid-connect/certs', 'keycloak'],
    ['https://login.test/oauth2/aus1/v1/keys', 'okta'],
    ['https://login.test/oauth2/v1/keys', undefined],
    ['https://login.test/1/discovery/v2.0/keys', 'entra'],
    ['https://login.test/1/discovery/keys', 'entra'],
    ['https://login.test/.well-known/openid-configuration/jwks', 'identityserver'],
    ['http://127.0.0.1:4000/.well-known/openid-configuration/jwks', undefined],
    ['https://login.test/.well-known/jwks', 'openiddict'],
    ['https://login.test/.well-known/jwks.json', undefined],
    ['https://login.test/pf/JWKS', 'ping'],
  ])('knows the vendor of the key set %s: %s', (jwksUri, preset) => {
    const recognition = preset && { preset, signs: ['the key set has a path of that vendor'] };
    expect(recognizeIssuer('https://login.test', jwksUri)).toEqual(recognition);
    expect(recognizeIssuer('https://shop.auth0.com/', jwksUri)).toMatchObject({ preset: 'auth0' });
  });
});

describe('advice', () => {
  const context: AdviceContext = { issuer: ISSUER, preset: PRESETS.rfc9068 };

  function adviceOn(reason: Reason, raw: string, changes: Partial<AdviceContext> = {}): string | undefined {
    const advice = configurationAdvice({ reason, privateDetail: undefined }, raw, { ...context, ...changes });
    return advice && wordAdvice(advice);
  }

  const ENCRYPTED =
    'the token is encrypted (JWE, five parts): set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET, or have the issuer sign access tokens and not encrypt them (JWS)';
  const OF_AUTH0 = Buffer.from('{"alg":"dir","enc":"A256GCM","iss":"https://shop.eu.auth0.com/"}').toString(
    'base64url',
  );
  const ADDRESS = 'look where the client reads access_token of the token response';
  const OPAQUE =
    'the token is opaque, not a JWT: set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET, or have the issuer make JWTs for this API, as many do once the client asks for its audience or resource';
  const DAMAGED = 'the token is not a JSON Web Token: compare it with what the token endpoint returned';

  it.each([
    ['an encrypted one', 'a.b.c.d.e', ENCRYPTED],
    ['an opaque one', 'c0ffee', OPAQUE],
    ['a damaged one', 'a.b.c', DAMAGED],
    ['half of one', 'a.b', DAMAGED],
    ['half of a JWT', 'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0', DAMAGED],
    ['an opaque one of Hydra', 'ory_at_AbCdEf1234567890.ZyXwVu0987654321', OPAQUE],
    [
      'one that Auth0 has encrypted',
      `${OF_AUTH0}..a.b.c`,
      'the token is encrypted for Auth0 itself, because the client names no audience: have it ask for a token of this API (parameter audience)',
    ],
    [
      'one without the signature',
      `${token().replace(/[^.]*$/, '')}SIGNATURE_REMOVED_BY_GOOGLE`,
      'Google has replaced the signature of the token: the platform reads the Authorization header; for Cloud Run the client sends its token in X-Serverless-Authorization, and that of this API in Authorization',
    ],
    ['undefined', 'undefined', `the client sent the text undefined: it had no token: ${ADDRESS}`],
    ['an object', '[object Object]', `the client sent the text [object Object]: it had no token: ${ADDRESS}`],
  ])('advises by the form of a token that is no JWT: %s', (_what, raw, advice) => {
    expect(adviceOn('malformed_token', raw)).toBe(advice);
  });

  const OR_REQUEST = ', or request the token from the expected one';
  it.each([
    ['https://x.test', '', OR_REQUEST],
    [`${ISSUER}/a`, '', OR_REQUEST],
    [`${ISSUER}/`, ' (the slash at the end)', ''],
    ['https://LOGIN.test', ' (upper and lower case)', ''],
  ])('advises on wrong_issuer: %s', (iss, difference, other) => {
    const advice = `iss is "${iss}", expected "${ISSUER}"${difference}: set TILLGATE_ISSUER=${iss}${other}`;
    expect(adviceOn('wrong_issuer', token({ claims: { iss } }))).toBe(advice);
  });

  it('advises to repair the server where iss is the same URL without TLS, which no option accepts', () => {
    expect(adviceOn('wrong_issuer', token({ claims: { iss: 'http://login.test' } }))).toBe(
      `iss is "http://login.test", expected "${ISSUER}" (http and https): behind a proxy that ends TLS the server must read the forwarded headers, or be told its public URL`,
    );
  });

  it("names OpenIddict's call where the key set has its path", () => {
    const jwksUri = `${ISSUER}/.well-known/jwks`;
    expect(adviceOn('malformed_token', 'a.b.c.d.e', { jwksUri })).toMatch(/DisableAccessTokenEncryption\(\)\)$/);
  });

  it('recognizes a vendor by its key set where the token does not show it', () => {
    const raw = token({ claims: { sub: undefined, generation: undefined } });
    const jwksUri = `${ISSUER}/.well-known/openid-configuration/jwks`;
    expect(adviceOn('invalid_claims', raw, { jwksUri })).toBe(
      'this token looks like identityserver (the key set has a path of that vendor): set TILLGATE_PRESET=identityserver',
    );
  });

  it('names the setting of the server where its own preset refuses the type', () => {
    const raw = token({ header: { typ: 'JWT' } });
    expect(adviceOn('wrong_type', raw, { presetName: 'identityserver', preset: PRESETS.identityserver })).toBe(
      'typ is "JWT": leave AccessTokenJwtType of IdentityServer at its default, at+jwt',
    );
  });

  it('names the preset jwt, and no setting of IdentityServer, for a token that has no client id as its tokens have', () => {
    const raw = token({ header: { typ: undefined }, claims: { client_id: undefined } });
    expect(adviceOn('wrong_type', raw, { presetName: 'identityserver', preset: PRESETS.identityserver })).toMatch(
      /^the token has no typ, the token has no client_id: set TILLGATE_PRESET=jwt, /,
    );
  });

  it('says once that a token has no typ, neither in its header nor in its claims', () => {
    const raw = token({ header: { typ: undefined }, claims: { azp: 'till-1' } });
    expect(adviceOn('wrong_type', raw, { presetName: 'keycloak', preset: PRESETS.keycloak })).toMatch(
      /^the token has no typ: /,
    );
  });

  it.each(['https://login.microsoftonline.com/t1/v2.0', 'https://login.test'])(
    'says what tokens of version 1 of Entra need, where %s is expected',
    (issuer) => {
      const raw = token({ claims: { iss: 'https://sts.windows.net/t1/', tid: 't1', ver: '1.0' } });
      expect(adviceOn('wrong_issuer', raw, { issuer, preset: PRESETS.entra })).toBe(
        'this is a token of version 1.0 of Entra: set requestedAccessTokenVersion (api.requestedAccessTokenVersion of the manifest) of the API to 2, and expect the issuer https://login.microsoftonline.com/t1/v2.0; or expect this one, https://sts.windows.net/t1/, with authUrl (TILLGATE_AUTH_URL) https://login.microsoftonline.com/t1',
      );
    },
  );

  it('names another tenant as such where tokens of version 1 of Entra are expected', () => {
    const raw = token({ claims: { iss: 'https://sts.windows.net/t1/', tid: 't1', ver: '1.0' } });
    const issuer = 'https://sts.windows.net/t2/';
    expect(adviceOn('wrong_issuer', raw, { issuer, preset: PRESETS.entra })).toBe(
      `iss is "https://sts.windows.net/t1/", expected "${issuer}": set TILLGATE_ISSUER=https://sts.windows.net/t1/, or request the token from the expected one`,
    );
  });

  it('names lightweight tokens of Keycloak', () => {
    const raw = token({ claims: { aud: undefined, typ: 'Bearer', jti: 'onltac:1' } });
    expect(adviceOn('wrong_audience', raw, { preset: PRESETS.keycloak })).toMatch(/lightweight access token/);
  });

  it.each(['00000003-0000-0000-c000-000000000000', 'https://graph.microsoft.com'])(
    'advises whatever the reason to ask for a token of this API, where aud is Microsoft Graph: %s',
    (aud) => {
      const advice =
        'the token is for Microsoft Graph, and only Graph can verify it: the client must ask for a token of this API, with scope=api://<application ID of the API>/.default';
      for (const reason of ['wrong_audience', 'wrong_issuer', 'bad_signature'] as const) {
        expect(adviceOn(reason, token({ claims: { aud } }))).toBe(advice);
      }
    },
  );

  const LONG = 'a'.repeat(300);
  const orAdd = 'or have the authorization server add the aud of this API';
  const noAudience =
    'the token has no aud: have the authorization server add that of this API; audience: false is for servers that cannot, under the presets cognito and identityserver';

  it.each<[Reason, TokenParts, string | undefined]>([
    ['wrong_issuer', { claims: { iss: 17 } }, `iss is 17, expected "${ISSUER}"`],
    ['wrong_audience', { claims: { aud: 'a' } }, `aud is "a": set TILLGATE_AUDIENCE=a, ${orAdd}`],
    ['wrong_audience', { claims: { aud: ['a', 'b'] } }, `aud is ["a","b"]: set TILLGATE_AUDIENCE=a, ${orAdd}`],
    [
      'wrong_audience',
      { claims: { aud: LONG } },
      `aud is "${LONG.slice(101)}: set TILLGATE_AUDIENCE=${LONG}, ${orAdd}`,
    ],
    ['wrong_audience', { claims: { aud: undefined } }, noAudience],
    ['wrong_audience', { claims: { aud: [] } }, noAudience],
    ['wrong_audience', { claims: { aud: { 0: 'a' } } }, noAudience],
    [
      'generation_missing',
      {},
      'the token lacks the claim that generationClaim (TILLGATE_GENERATION_CLAIM) names: have the authorization server add it, or leave the option out, and tokens without the claim are compared by iat',
    ],
    [
      'lifetime_too_long',
      { claims: { iat: NOW, exp: NOW + 90_000 } },
      'tokens live for 90000 s: set TILLGATE_MAX_TOKEN_AGE_SECONDS=90000, or have the issuer shorten that',
    ],
    [
      'algorithm_not_allowed',
      { header: { alg: 'HS256' } },
      'alg is "HS256", which needs a shared secret: have the issuer sign with a key pair',
    ],
    [
      'algorithm_not_allowed',
      { header: { alg: 'HS256' }, claims: { iss: 'https://x.scm.azurewebsites.net' } },
      'alg is "HS256": Azure Static Web Apps (azurewebsites.net) has replaced the Authorization header by a token of its own: the client must call the API at a URL of its own',
    ],
    [
      'algorithm_not_allowed',
      { header: { alg: 'ES256K' } },
      'alg is "ES256K": have the issuer sign with an accepted one, such as RS256',
    ],
    [
      'wrong_type',
      { header: { typ: 'JWT' } },
      'typ is "JWT": set TILLGATE_PRESET=jwt, or have the issuer make access tokens by RFC 9068',
    ],
    [
      'wrong_type',
      { header: { typ: undefined } },
      'the token has no typ: set TILLGATE_PRESET=jwt, or have the issuer make access tokens by RFC 9068',
    ],
    [
      'invalid_claims',
      { claims: { iat: undefined, sub: undefined, jti: undefined, client_id: undefined } },
      'the token has no iat, the token has no sub, the token has no jti, the token has no client_id: no option takes such a token, the server must add iat, sub, jti, client_id',
    ],
    ['not_yet_valid', {}, 'compare the clock of this machine with that of the authorization server'],
    ['expired', { claims: { exp: 1 } }, undefined],
    ['bad_signature', {}, undefined],
  ])('advises on %s: %j', (reason, parts, advice) => {
    expect(adviceOn(reason, token(parts))).toBe(advice);
  });

  describe('a token that looks like that of a vendor', () => {
    const keycloak = token({ header: { typ: 'JWT' }, claims: { typ: 'Bearer', azp: 'pos-17' } });
    const advice = 'this token looks like keycloak (typ is JWT, typ is Bearer, azp): set TILLGATE_PRESET=keycloak';

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
      expect(adviceOn('generation_missing', keycloak, { preset: PRESETS.keycloak })).toContain('lacks the claim');
    });

    it('is not where it looks like none', () => {
      expect(adviceOn('invalid_claims', token())).toBeUndefined();
    });
  });

  describe('permissions in claims that are not read as scopes', () => {
    const roles = { roles: ['till'] };
    const realmRoles = [{ path: ['realm_access', 'roles'], prefix: '' }];
    const ROLES = { from: realmRoles, map: undefined };
    const ofClient = (client: string) => ({ resource_access: { [client]: roles } });

    it.each<[string, Record<string, unknown>, named: string, variable: string, ScopeRule?]>([
      ['realm roles', { realm_access: roles }, 'realm_access.roles', 'scope,realm_access.roles'],
      ['roles of a client', ofClient('shop'), 'resource_access.shop.roles', 'scope,resource_access.shop.roles'],
      ['permissions, without scope', { scope: undefined, permissions: ['a'] }, 'permissions', 'permissions'],
      [
        'roles, where other ones are read',
        { realm_access: roles, roles: ['a'], scope: undefined },
        'roles',
        'realm_access.roles,roles',
        ROLES,
      ],
    ])('are named after insufficient_scope: %s', (_what, claims, named, variable, scopes = undefined) => {
      const raw = token({ claims });
      const advice = configurationAdvice({ reason: 'insufficient_scope', privateDetail: undefined }, raw, {
        ...context,
        scopes,
      });
      expect(advice?.value).toEqual(variable.split(','));
      expect(adviceOn('insufficient_scope', raw, { scopes })).toBe(
        `the token also has names in "${named}"; if they are permissions, read them: set TILLGATE_SCOPE_CLAIMS=${variable}`,
      );
    });

    it('are not named where they are of the account pages', () => {
      const claims = { resource_access: { account: roles, shop: roles } };
      expect(adviceOn('insufficient_scope', token({ claims }))).toContain('has names in "resource_access.shop.roles";');
    });

    it.each(['shop.api', 'shop api', 'a\nb', '$(id)', "a'b"])(
      'are named as JSON that does not leave the quotes of a shell, where the name of a client is %j',
      (client) => {
        const raw = token({ claims: ofClient(client) });
        const value = ['scope', ['resource_access', client, 'roles']];
        const quoted = `'${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
        expect(
          configurationAdvice({ reason: 'insufficient_scope', privateDetail: undefined }, raw, context)?.value,
        ).toEqual(value);
        expect(adviceOn('insufficient_scope', raw)).toBe(
          `the token also has names in ${JSON.stringify(`resource_access.${client}.roles`)}; if they are permissions, read them: set TILLGATE_SCOPE_CLAIMS=${quoted}`,
        );
      },
    );

    it.each<[string, Record<string, unknown>, ScopeRule]>([
      [
        'a map does not have',
        { realm_access: { roles: ['till', 'Store Manager'] }, scope: undefined },
        { from: realmRoles, map: new Map([['till', []]]) },
      ],
      [
        'a map does not have, in the claim of the preset',
        { scope: 'Store\u00a0Manager till' },
        { from: undefined, map: new Map([['till', []]]) },
      ],
      [
        'cannot be scopes',
        { roles: ['orders:read', 'Store Manager'], scope: undefined },
        { from: [{ path: ['roles'], prefix: '' }], map: undefined },
      ],
    ])('are named after insufficient_scope: names that %s', (_what, claims, scopes) => {
      const advice = adviceOn('insufficient_scope', token({ claims }), { scopes })?.replaceAll('\u00a0', ' ');
      expect(advice).toBe(
        `no scope comes from "Store Manager"; if these are permissions, say which scopes they grant: set TILLGATE_SCOPE_MAP='{"Store Manager":["orders:read"]}'`,
      );
    });

    it('names the first ten of many that grant no scope', () => {
      const roles = Array.from({ length: 11 }, (_, index) => `role ${index}`);
      const scopes = { from: [{ path: ['roles'], prefix: '' }], map: undefined };
      expect(adviceOn('insufficient_scope', token({ claims: { roles } }), { scopes })).toMatch(
        /^no scope comes from "role 0", .*"role 9", \.\.\.; /,
      );
    });

    it.each<[string, Record<string, unknown>, ScopeRule | undefined]>([
      ['there are none', {}, undefined],
      ['they are empty', { roles: [], permissions: '', scp: [''] }, undefined],
      ['they are not names', { roles: { till: true }, resource_access: ['a'], realm_access: 'roles' }, undefined],
      ['they are read', { realm_access: roles, scope: undefined }, ROLES],
    ])('are not named where %s', (_what, claims, scopes) => {
      expect(adviceOn('insufficient_scope', token({ claims }), { scopes })).toBeUndefined();
    });
  });
});
