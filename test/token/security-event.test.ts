import type { AuthError } from '../../src/core/auth-error';
import { staticKeys } from '../../src/token/keys/key-set';
import { securityEventVerifier } from '../../src/token/security-event';
import { NOW, NOW_MS, token } from '../support/issuer';
import type { Members } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';

const TRANSMITTER = 'https://login.test';
const RECEIVER = 'https://api.test/events';
const EVENT = 'https://schemas.openid.net/secevent/caep/event-type/credential-change';

const verify = securityEventVerifier({
  transmitter: TRANSMITTER,
  audiences: [RECEIVER, 'https://api.test/other'],
  algorithms: ['ES256'],
  keys: staticKeys(jwks(testKey())),
  clockToleranceMs: 10_000,
  clock: () => NOW_MS,
});

/** A good security event token with some claims replaced; `undefined` removes one. */
function setWith(claims: Members = {}, header: Members = {}): string {
  const good = { iss: TRANSMITTER, aud: RECEIVER, jti: 'e-1', iat: NOW, events: { [EVENT]: { reason: 'lost' } } };
  return token({ header: { typ: 'secevent+jwt', ...header }, payload: JSON.stringify({ ...good, ...claims }) });
}

async function refusal(raw: string): Promise<unknown> {
  try {
    await verify(raw);
    return undefined;
  } catch (error) {
    const { reason, privateDetail } = error as AuthError;
    return privateDetail === undefined ? reason : `${reason}: ${privateDetail}`;
  }
}

it('returns what a security event token says, frozen to its depth', async () => {
  const subject = { format: 'iss_sub', iss: TRANSMITTER, sub: 'pos-17', more: { x: 1 } };
  const event = await verify(setWith({ sub_id: subject }));
  expect(event).toEqual({
    tokenId: 'e-1',
    issuedAtMs: NOW_MS,
    events: { [EVENT]: { reason: 'lost' } },
    subject,
  });
  expect([event.events, event.events[EVENT], event.subject].every(Object.isFrozen)).toBe(true);
  expect(Object.isFrozen((event.subject as { more: unknown }).more)).toBe(true);
});

it.each<[string, Members]>([
  ['the other audience', { aud: 'https://api.test/other' }],
  ['one audience of several', { aud: ['https://elsewhere.test', RECEIVER] }],
  ['an iat of zero', { iat: 0 }],
  ['an iat at the end of the tolerance', { iat: NOW + 10 }],
  ['an exp that the tolerance still allows', { exp: NOW - 9.999 }],
  ['an exp in the future', { exp: NOW + 60 }],
])('accepts %s', async (_what, claims) => {
  expect(await refusal(setWith(claims))).toBeUndefined();
});

it.each<[string, Members]>([
  ['wrong_issuer', { iss: 'https://login.test/' }],
  ['wrong_issuer', { iss: undefined }],
  ['wrong_audience', { aud: `${RECEIVER}/` }],
  ['wrong_audience', { aud: ['https://elsewhere.test'] }],
  ['wrong_audience', { aud: [] }],
  ['wrong_audience', { aud: undefined }],
  ['not_yet_valid', { iat: NOW + 10.001 }],
  ['expired', { exp: NOW - 10 }],
  ['expired', { exp: 0 }],
])('refuses as %s: %j', async (reason, claims) => {
  expect(await refusal(setWith(claims))).toBe(reason);
});

it.each<[string, Members]>([
  ['jti', { jti: undefined }],
  ['jti', { jti: 7 }],
  ['jti', { jti: '' }],
  ['iat', { iat: undefined }],
  ['iat', { iat: '1' }],
  ['iat', { iat: -1 }],
  ['exp', { exp: '1' }],
  ['exp', { exp: null }],
  ['events', { events: undefined }],
  ['events', { events: {} }],
  ['events', { events: null }],
  ['events', { events: [EVENT] }],
  ['events', { events: EVENT }],
])('tells operators that %s is wrong: %j', async (name, claims) => {
  expect(await refusal(setWith(claims))).toMatch(new RegExp(`^invalid_claims: ${name} is `));
});

it('refuses an iat that is too large for a number', async () => {
  const raw = JSON.stringify({ iss: TRANSMITTER, aud: RECEIVER, jti: 'e-1', events: { [EVENT]: {} } });
  const payload = raw.replace(/}$/, ',"iat":-1e400}');
  expect(await refusal(token({ header: { typ: 'secevent+jwt' }, payload }))).toMatch(/^invalid_claims: iat/);
  const later = raw.replace(/}$/, ',"iat":1e400}');
  expect(await refusal(token({ header: { typ: 'secevent+jwt' }, payload: later }))).toMatch(/^invalid_claims: iat/);
});

it.each(['at+jwt', 'JWT', '', undefined])('refuses typ %s', async (typ) => {
  expect(await refusal(setWith({}, { typ }))).toBe('wrong_type');
});

it('refuses another key with the same id, and another algorithm', async () => {
  const payload = JSON.stringify({ iss: TRANSMITTER, aud: RECEIVER, jti: 'e', iat: NOW, events: { [EVENT]: {} } });
  const header = { typ: 'secevent+jwt' };
  expect(await refusal(token({ key: newKey(), header, payload }))).toBe('bad_signature');
  expect(await refusal(token({ key: testKey('ES384'), header, payload }))).toMatch(/^algorithm_not_allowed/);
});
