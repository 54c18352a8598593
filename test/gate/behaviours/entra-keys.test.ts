import type { Reason } from '../../../src/gate';
import { fakeTime, settle } from '../../support/fake-time';
import { gateApp, remember } from '../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../support/gate-app';
import { AUDIENCE, NOW, NOW_MS, token } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';
import type { TestKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

const TENANT = '11111111-2222-3333-4444-555555555555';
const OTHERS = '9188040d-6c67-4c5b-b112-36a304b66dad';
const HOST = 'https://login.microsoftonline.com';
const V2 = `${HOST}/${TENANT}/v2.0`;
const V1 = `https://sts.windows.net/${TENANT}/`;
const OF_ALL = `${HOST}/{tenantid}/v2.0`;
const COMMON = `${HOST}/common/discovery/v2.0/keys`;
const [KEY, OTHER] = [testKey('ES256', 'a'), testKey('ES256', 'b')];

/** The JWK of a key, with the member `issuer` of Microsoft. */
const limited = ({ jwk }: TestKey, issuer: unknown): object => ({ ...jwk, issuer });

interface EntraGate extends GateApp {
  /** Publishes another key set; the gate has it after the refresh. */
  readonly publish: (keys: readonly object[]) => Promise<void>;
}

/** A gate for tokens of Entra whose key set is this one. */
function entraGate(keys: readonly object[], options: GateAppOptions & { readonly issuer?: string } = {}): EntraGate {
  const time = fakeTime(NOW_MS);
  let published = keys;
  const issuer = options.issuer ?? V2;
  const through = gateApp({
    ...{ preset: 'entra', issuer, audience: AUDIENCE, jwksUri: COMMON },
    ...{ clock: time.clock, schedule: time.schedule, random: () => 0.5 },
    fetch: (url) =>
      Promise.resolve(
        Response.json(url.endsWith('/openid-configuration') ? { issuer, jwks_uri: COMMON } : { keys: published }),
      ),
    ...options,
  });
  return Object.assign(through, {
    async publish(next: readonly object[]) {
      published = next;
      await settle();
      await time.advance(480_000);
    },
  });
}

/** A token as Entra issues them. */
function entraToken({
  key = KEY,
  ...changes
}: { readonly key?: TestKey; readonly [claim: string]: unknown } = {}): string {
  const common = { iss: V2, aud: AUDIENCE, azp: 'pos-17', tid: TENANT, roles: ['orders:read'] };
  return token({ key, header: { typ: 'JWT' }, claims: { ...common, iat: NOW, exp: NOW + 3_600, ...changes } });
}

describe('a key of a key set that tenants share', () => {
  it.each<[string, string, string | undefined, unknown]>([
    ['that of all tenants', V2, COMMON, OF_ALL],
    ['the configured one', V2, COMMON, V2],
    ['that of all tenants, for tokens of version 1', V1, COMMON, OF_ALL],
    ['that of version 1', V1, `${HOST}/common/discovery/keys`, 'https://sts.windows.net/{tenantid}/'],
    ['that of all tenants, found by metadata', V2, undefined, OF_ALL],
    ['that of version 1, found by metadata', V1, undefined, 'https://sts.windows.net/{tenantid}/'],
    [
      'that of another cloud',
      `https://login.microsoftonline.us/${TENANT}/v2.0`,
      'https://login.microsoftonline.us/common/discovery/v2.0/keys',
      'https://login.microsoftonline.us/{tenantid}/v2.0',
    ],
    [
      'that of another cloud, for tokens of version 1',
      V1,
      'https://login.partner.microsoftonline.cn/common/discovery/v2.0/keys',
      'https://login.partner.microsoftonline.cn/{tenantid}/v2.0',
    ],
    ['missing', V2, COMMON, undefined],
    ['blank', V2, COMMON, ' \t'],
    ['not a string', V2, COMMON, 7],
  ])('verifies tokens where its issuer is %s', async (_what, issuer, jwksUri, of) => {
    const through = entraGate([limited(KEY, of)], { issuer, jwksUri });
    await through.get(entraToken({ iss: issuer })).expect(200);
  });

  it.each<[string, string, unknown]>([
    ['that of another tenant', V2, `${HOST}/${OTHERS}/v2.0`],
    ['that of another cloud', V2, 'https://login.microsoftonline.us/{tenantid}/v2.0'],
    ['that of version 1, and the configured one is of version 2', V2, 'https://sts.windows.net/{tenantid}/'],
    ['in another case', V2, V2.replace('login', 'LOGIN')],
    ['written {tenantId}', V2, `${HOST}/{tenantId}/v2.0`],
    ['written {tenantid} with a blank', V2, `${OF_ALL} `],
    ['one with a slash more', V2, `${OF_ALL}/`],
    ['that of another tenant, for tokens of version 1', V1, `${HOST}/${OTHERS}/v2.0`],
    ['that of all tenants, and the configured one names none', HOST, HOST],
  ])('verifies none where its issuer is %s: 401 unusable_key', async (_what, issuer, of) => {
    const through = entraGate([limited(KEY, of), limited(OTHER, undefined)], { issuer });
    expectRefusal(await through.get(entraToken({ iss: issuer })), 'unusable_key', through, {
      detail: 'the key is not used: its issuer is another one',
    });
    await through.get(entraToken({ iss: issuer, key: OTHER })).expect(200);
  });

  it.each<[string, unknown, string]>([
    ['no tenant', undefined, `tid is missing, but its key is for tenant ${TENANT}`],
    ['another tenant', OTHERS, `tid is "${OTHERS}", but its key is for tenant ${TENANT}`],
    ['a tenant that is not a string', [TENANT], `tid is an array of 1, but its key is for tenant ${TENANT}`],
  ])('verifies no token that names %s, cached or not', async (_what, tid, detail) => {
    const through = entraGate([limited(KEY, OF_ALL), limited(OTHER, undefined)]);
    for (let use = 0; use < 3; use++) {
      expectRefusal(await through.get(entraToken({ tid })), 'invalid_claims', through, { detail });
    }
    await through.get(entraToken({ tid, key: OTHER })).expect(200);
  });

  it.each([
    ['first', [0, 1]],
    ['last', [1, 0]],
  ])('is told from one with the same kid and another issuer, which comes %s', async (_what, order) => {
    const [mine, theirs] = [newKey('ES256', 'same'), newKey('ES256', 'same')];
    const keys = [limited(theirs, `${HOST}/${OTHERS}/v2.0`), limited(mine, OF_ALL)];
    const through = entraGate(order.map((index) => keys[index]!));
    await through.get(entraToken({ key: mine })).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(entraToken({ key: theirs })), 'bad_signature', through);
    expectRefusal(await through.get(entraToken({ key: mine, tid: OTHERS })), 'invalid_claims', through);
  });

  it.each<[string, unknown, object, Reason]>([
    ['another issuer', OF_ALL, { issuer: `${HOST}/${OTHERS}/v2.0` }, 'unusable_key'],
    ['the issuer of all tenants', undefined, { issuer: OF_ALL }, 'invalid_claims'],
  ])('that gets %s refuses a cached token from the next refresh on', async (_what, before, after, reason) => {
    const through = entraGate([limited(KEY, before), OTHER.jwk]);
    const raw = entraToken(before === undefined ? { tid: undefined } : {});
    await remember(through, raw);
    await through.publish([{ ...KEY.jwk, ...after }, OTHER.jwk]);
    expectRefusal(await through.get(raw), reason, through);
  });

  it('is limited in a kept key set too', async () => {
    const keys = [limited(KEY, OF_ALL), limited(OTHER, `${HOST}/${OTHERS}/v2.0`)];
    const record = JSON.stringify({ format: 1, issuer: V2, jwksUri: COMMON, fetchedAtMs: NOW_MS, keys });
    const through = entraGate([], {
      keyStore: { load: () => Promise.resolve(record), save: () => Promise.resolve() },
      fetch: () => Promise.reject(new Error('down')),
    });
    await through.get(entraToken()).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(entraToken({ key: OTHER })), 'unusable_key', through);
    expectRefusal(await through.get(entraToken({ tid: OTHERS })), 'invalid_claims', through);
  });

  it('is limited under the preset entra only', async () => {
    const through = entraGate([limited(KEY, 'https://other.test')], { preset: 'auth0' });
    await through.get(entraToken({ tid: undefined, scope: 'orders:read' })).expect(200);
  });
});
