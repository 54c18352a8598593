import { AuthError } from '../../src';
import { withAdvice } from '../../src/gate/advice';
import { PRESETS } from '../../src/token/presets';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { AUDIENCE, ISSUER, NOW, token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const OF_KEYCLOAK = { header: { typ: 'JWT' }, claims: { typ: 'Bearer', azp: 'pos-17' } };
const KEYCLOAK = token(OF_KEYCLOAK);
/** A key that the issuer does not publish. */
const STRANGER = newKey('ES256', 'stranger');
/** Signed by somebody else under the id of a published key. */
const forged = (parts: TokenParts): string => token({ ...parts, key: newKey('ES256', testKey().kid) });
const OTHER_AUDIENCE = token({ claims: { aud: 'account' } });
const MESSAGE = 'no token has been accepted so far: check the configuration';

/** What the gate advised, after these tokens. */
async function adviceAfter(through: GateApp, ...tokens: readonly string[]): Promise<unknown> {
  for (const raw of tokens) {
    await through.get(raw);
    // The signature of a refused token is checked after the response.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  return through.log.at('warn').map(({ fields, message }) => [message, fields]);
}

const advised = (reason: string, advice: string): unknown => [[MESSAGE, { issuer: ISSUER, reason, advice }]];

it.each([
  [
    'another preset',
    KEYCLOAK,
    'wrong_type',
    "this token looks like keycloak (typ is JWT, typ is Bearer, azp): set preset: 'keycloak'",
  ],
  [
    'another audience',
    OTHER_AUDIENCE,
    'wrong_audience',
    'aud is "account": set audience: \'account\', or let the authorization server add the aud of this API',
  ],
  [
    'tokens without a generation',
    token({ claims: { generation: undefined } }),
    'generation_missing',
    "the issuer stamps no generation: set generationClaim: 'iat', or let the authorization server add the claim",
  ],
])('the first refusal that suggests %s is logged with advice, once', async (_what, raw, reason, advice) => {
  expect(await adviceAfter(gateApp(), raw, raw, KEYCLOAK)).toEqual(advised(reason, advice));
});

it.each([
  ['a caller sent garbage', ['x', token({ header: { alg: 'none' } })]],
  ['a token has expired', [token({ claims: { exp: NOW - 60 } })]],
  ['a signature is forged', [token({ key: newKey('ES256', testKey().kid) })]],
  ['a token was accepted before', [token(), OTHER_AUDIENCE]],
  ['a signature is forged, of a token of another type', [forged({ header: { typ: 'JWT' } })]],
  ['a signature is forged, of a token that looks like one of Keycloak', [forged(OF_KEYCLOAK)]],
  ['a key is unknown, of a token that looks like one of Keycloak', [token({ ...OF_KEYCLOAK, key: STRANGER })]],
  ['a key is unknown, of a token of another issuer', [token({ key: STRANGER, claims: { iss: 'https://evil.test' } })]],
  ['a key is unknown, of a token for another audience', [token({ key: STRANGER, claims: { aud: 'evil' } })]],
  ['the signature is cut off', [`${KEYCLOAK.slice(0, KEYCLOAK.lastIndexOf('.'))}.AAAA`]],
])('no advice where %s', async (_what, tokens) => {
  expect(await adviceAfter(gateApp(), ...tokens)).toEqual([]);
});

it('what suggests nothing does not use the advice up', async () => {
  expect(await adviceAfter(gateApp(), 'x', token({ claims: { exp: 1 } }), OTHER_AUDIENCE)).toHaveLength(1);
});

it('a made-up token does not use the advice up', async () => {
  expect(await adviceAfter(gateApp(), forged(OF_KEYCLOAK), OTHER_AUDIENCE)).toHaveLength(1);
});

it('no advice with several issuers: a token does not show which of them is meant', async () => {
  const issuers = [ISSUER, 'https://other.test'].map((issuer) => ({
    issuer,
    audience: AUDIENCE,
    keys: jwks(testKey()),
  }));
  expect(await adviceAfter(gateApp({ issuers }), OTHER_AUDIENCE)).toEqual([]);
});

it('the response says nothing of it', async () => {
  const { body } = await gateApp().get(KEYCLOAK).expect(401);
  expect(JSON.stringify(body)).not.toMatch(/keycloak|preset/);
});

it('a logger that throws does not end the process', async () => {
  const logger = {
    info() {},
    error() {},
    warn: () => {
      throw new Error('disk full');
    },
  };
  await gateApp({ logger }).get(OTHER_AUDIENCE).expect(401);
  await new Promise(setImmediate);
});

it.each<[string, readonly unknown[], number]>([
  ['once for tokens that are refused together', Array<unknown>(3).fill(new AuthError('wrong_audience')), 1],
  ['never after a token that was accepted meanwhile', [undefined, new AuthError('wrong_audience')], 0],
  ['never for what is not a refusal', [Object.assign(new Error('down'), { reason: 'wrong_audience' })], 0],
])('advice is given %s', async (_what, outcomes, warnings) => {
  const logger = recordingLogger();
  const left = [...outcomes];
  const verify = withAdvice<void>(
    () => {
      const error = left.shift();
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as given
      return error === undefined ? Promise.resolve() : Promise.reject(error);
    },
    () => Promise.resolve(true),
    { issuers: [{ issuer: ISSUER, preset: PRESETS.rfc9068 }], logger },
  );
  await Promise.allSettled(outcomes.map(() => verify(OTHER_AUDIENCE)));
  await new Promise(setImmediate);
  expect(logger.at('warn')).toHaveLength(warnings);
});
