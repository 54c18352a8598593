import type { Express, RequestHandler } from 'express';
import { authenticate } from '../../../src/gate';
import type { PresetName, Reason } from '../../../src/gate';
import { presetOfUrl } from '../../../src/gate/token/presets';
import { gateApp } from '../../support/gate-app';
import { AUDIENCE, NOW, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';
import { VENDOR_TOKENS } from '../../support/vendor-tokens';

const TENANT = '3f1c7a4e-0000-4000-8000-000000000001';

/** An issuer of each vendor whose URL shows it. */
const ISSUERS: readonly (readonly [issuer: string, preset: PresetName])[] = [
  ['https://shop.eu.auth0.com/', 'auth0'],
  ['https://shop.okta.com/oauth2/default', 'okta'],
  [`https://login.microsoftonline.com/${TENANT}/v2.0`, 'entra'],
  ['https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab1', 'cognito'],
  ['https://auth.pingone.eu/0a1b/as', 'ping'],
  ['https://shop.projects.oryapis.com', 'hydra'],
  ['https://sso.example.com/realms/shop', 'keycloak'],
];

describe('the preset of an issuer by its URL', () => {
  it.each([
    ...ISSUERS,
    ['https://SHOP.EU.AUTH0.COM/', 'auth0'],
    ['https://shop.oktapreview.com/oauth2/aus1', 'okta'],
    [`https://sts.windows.net/${TENANT}/`, 'entra'],
    [`https://login.microsoftonline.us/${TENANT}/v2.0`, 'entra'],
    ['https://cognito-idp.cn-north-1.amazonaws.com.cn/cn-north-1_Ab1', 'cognito'],
    ['https://auth.pingone.com.au/0a1b/as', 'ping'],
    ['https://sso.example.com/auth/realms/shop', 'keycloak'],
    ['http://127.0.0.1:8180/realms/shop', 'keycloak'],
  ] as const)('%s is %s', (issuer, preset) => {
    expect(presetOfUrl(issuer)).toBe(preset);
  });

  it.each([
    'https://auth0.com.evil.example/',
    'https://evil.example\\.auth0.com/',
    'https://evil.example/.auth0.com/',
    'https://evil.example/?.auth0.com/',
    'https://evil.example/#.auth0.com/',
    'https://shop.auth0.com@evil.example/',
    'https://evil.example%2f.auth0.com/',
    'https://evilauth0.com/',
    'https://auth0.com/',
    'https://.auth0.com/',
    'https://shop.auth0.com./',
    'https://shop.auth0.com:8443/',
    'http://shop.eu.auth0.com/',
    'https://okta.com.evil.example/oauth2/default',
    'https://shop.okta.community/',
    'https://login.microsoftonline.com.evil.example/x/v2.0',
    'https://cognito-idp.evil.example.amazonaws.com/x',
    'https://cognito-idp.evil/x.amazonaws.com/x',
    'https://auth.pingone.example/0a1b/as',
    'https://sso.example.com/realms/shop/',
    'https://sso.example.com/realms/',
    'https://sso.example.com/?x=/realms/shop',
    'https://sso.example.com/realms/shop/protocol',
    'urn:/realms/shop',
    'ftp://sso.example.com/realms/shop',
    'shop.eu.auth0.com',
    'https://login.example.com',
    '',
  ])('%s is of no vendor: its tokens follow RFC 9068', (issuer) => {
    expect(presetOfUrl(issuer)).toBeUndefined();
  });

  it.each(ISSUERS)('accepts the tokens that %s makes, with issuer and audience alone', async (iss, preset) => {
    const vendor = VENDOR_TOKENS.find((one) => one.preset === preset);
    const claims = { ...vendor?.claims, iss, aud: AUDIENCE, ...(preset === 'entra' && { tid: TENANT }) };
    const routes = (app: Express, reach: RequestHandler): void => void app.get('/v1/orders', reach);
    const app = gateApp({ issuer: iss, preset: undefined, unguarded: 'allow', routes });
    await app.get(made(vendor?.typ, claims)).expect(200);
    expect(app.gate.status().issuers).toMatchObject([{ issuer: iss, preset: { name: preset, chosenBy: 'issuer' } }]);
    expect(app.log.entries[0]).toEqual({
      level: 'info',
      fields: { issuer: iss },
      message: `preset ${preset}, by the issuer's URL; name it to be sure`,
    });
  });

  it.each(ISSUERS)('is not taken where %s has an explicit one', (issuer) => {
    const gate = authenticate({ issuer, audience: AUDIENCE, keys: jwks(testKey()), preset: 'rfc9068' });
    expect(gate.status().issuers).toMatchObject([{ preset: { name: 'rfc9068', chosenBy: 'option' } }]);
  });

  it('is asked of the issuer alone, not of the URLs that keys and metadata come from', async () => {
    const issuer = 'https://login.example.com';
    for (const urls of [{ jwksUri: 'https://shop.auth0.com/jwks' }, { authUrl: 'https://shop.auth0.com/' }]) {
      const fetch = () => Promise.reject(new Error('offline'));
      const gate = authenticate({
        issuer,
        audience: AUDIENCE,
        ...urls,
        fetch,
        logger: { info() {}, warn() {}, error() {} },
      });
      expect(gate.status().issuers).toMatchObject([{ preset: { name: 'rfc9068', chosenBy: 'default' } }]);
      await gate.close();
    }
  });

  /** As each vendor makes them for an app that signs people in, without nonce, auth_time and at_hash. */
  it.each<[PresetName, string | undefined, object, Reason?]>([
    ['auth0', 'JWT', { sub: 'auth0|5f7c', sid: 's-1', name: 'Ada' }],
    ['okta', undefined, { sub: '00u1', ver: 1, jti: 'ID.1', amr: ['pwd'], idp: '00o1' }],
    ['entra', 'JWT', { sub: 's-1', oid: 'o-1', tid: TENANT, ver: '2.0', uti: 'u', rh: 'r', nbf: NOW }],
    ['cognito', undefined, { sub: 's-1', token_use: 'id', 'cognito:username': 'ada', event_id: 'e', jti: 'j' }],
    ['ping', 'JWT', { sub: 's-1', sid: 's', env: '0a1b', org: 'o', acr: 'Single_Factor', amr: ['pwd'] }],
    ['hydra', 'JWT', { sub: 's-1', jti: 'j', rat: NOW, sid: 's' }],
    ['keycloak', 'JWT', { sub: 's-1', typ: 'ID', azp: 'web', sid: 's', jti: 'j', acr: '1' }],
  ])(
    'refuses an ID token of %s, though its audience is the one of the gate',
    async (preset, typ, claims, reason = 'invalid_claims') => {
      const [iss = ''] = ISSUERS.find(([, name]) => name === preset) ?? [];
      const app = gateApp({ issuer: iss, preset: undefined, audience: 'web' });
      const response = await app.get(made(typ, { iss, aud: 'web', iat: NOW, exp: NOW + 300, ...claims }));
      expectRefusal(response, reason, app);
    },
  );
});

function made(typ: string | undefined, claims: object): string {
  const { alg, kid } = testKey();
  return token({ rawHeader: JSON.stringify({ alg, kid, typ }), payload: JSON.stringify(claims) });
}
