import type { PresetName } from '../../src/token/presets';
import { recognizeIssuer, recognizeToken } from '../../src/token/advice';

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
