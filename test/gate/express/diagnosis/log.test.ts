import { explain } from '../../../../src/gate/index';
import { memoryGenerations } from '../../../../src/gate/generation';
import { settle } from '../../../support/fake-time';
import { gateApp } from '../../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../../support/gate-app';
import { AUDIENCE, GENERATION, goodClaims, ISSUER, NOW, NOW_MS, token } from '../../../support/issuer';
import type { Members, TokenParts } from '../../../support/issuer';
import { eventually } from '../../../support/key-server';
import { jwks, testKey } from '../../../support/keys';

/** What a running gate logs about a first token that does not fit: why it was refused, and what to do. */
async function logOf(through: GateApp, raw: string): Promise<{ detail: unknown; advice: Members | undefined }> {
  await through.get(raw);
  // The signature of a refused token is checked after the response: here it is waited for.
  await explain(raw, { gate: through.gate });
  await settle();
  const { entries } = through.log;
  const refusal = entries.find(({ message }) => message === 'request refused');
  const advice = entries.find(({ message }) => message.startsWith('no token has been accepted so far'));
  return { detail: refusal?.fields['detail'], advice: advice?.fields };
}

/** A token with exactly these claims. */
function exactly(claims: Members, typ?: string): string {
  const { alg, kid } = testKey();
  return token({ rawHeader: JSON.stringify({ alg, kid, typ }), payload: JSON.stringify(claims) });
}

const OF_OPENIDDICT = { oi_prst: 'pos-17', oi_tkn_id: '7' };
const CORRECT = 'have the authorization server correct that claim, or send an access token of this API';
const without = (name: string): TokenParts => ({ claims: { [name]: undefined } });

it.each<[string, string, GateAppOptions, string | undefined, Members | undefined]>([
  [
    'a claim that the preset in force needs, and no advice to set that preset',
    token({ claims: { ...OF_OPENIDDICT, sub: undefined } }),
    { preset: 'openiddict' },
    'sub is missing',
    { why: 'the token has no sub', option: 'preset', value: 'jwt', otherwise: 'have the server add sub' },
  ],
  [
    'all that is missing, and that no option takes the token (OpenAuth)',
    exactly({ iss: ISSUER, aud: AUDIENCE, sub: 'x', mode: 'access', exp: NOW + 600 }),
    {},
    'header has no typ, expected at+jwt',
    {
      why: 'the token has no typ, the token has no iat, the token has no jti, the token has no client_id: no option takes such a token, the server must add iat, jti, client_id',
    },
  ],
  [
    'all that is missing, and that no option takes the token (go-oauth2)',
    exactly({ aud: AUDIENCE, exp: NOW + 600 }, 'JWT'),
    { preset: 'jwt' },
    'iss is missing',
    {
      why: 'the token has no iss, the token has no iat, the token has no client_id or azp or cid or appid or sub: no option takes such a token, the server must add iss, iat, client_id or azp or cid or appid or sub',
    },
  ],
  [
    'no aud, and the presets without one',
    token(without('aud')),
    {},
    'aud is missing',
    {
      why: 'the token has no aud: the server must add aud; audience: false is for servers that cannot, under the presets cognito and identityserver',
    },
  ],
  [
    'no exp',
    token(without('exp')),
    {},
    'exp is missing',
    { why: 'the token has no exp: no option takes such a token, the server must add exp' },
  ],
  [
    'a claim of the wrong type',
    token({ claims: { sub: 17 } }),
    {},
    'sub is not a string',
    { why: 'sub is not a string', otherwise: CORRECT },
  ],
  [
    'a typ, and the setting of IdentityServer where its preset is in force',
    token({ header: { typ: 'JWT' } }),
    { preset: 'identityserver' },
    'header typ is "JWT", expected at+jwt',
    { why: 'typ is "JWT": leave AccessTokenJwtType of IdentityServer at its default, at+jwt' },
  ],
  [
    'the issuer without TLS',
    token({ claims: { iss: 'http://login.test' } }),
    {},
    `iss is "http://login.test", expected "${ISSUER}"`,
    {
      why: `iss is "http://login.test", expected "${ISSUER}" (http and https)`,
      otherwise: 'behind a proxy that ends TLS the server must read the forwarded headers, or be told its public URL',
    },
  ],
  [
    'an encrypted token, and both ways out',
    'a.b.c.d.e',
    {},
    '5 parts instead of 3: an encrypted token (JWE) for the authorization server itself: the client must ask for the audience of this API, and the issuer must sign its tokens and not encrypt them; or use the option opaque',
    undefined,
  ],
])('the log names %s', async (_what, raw, options, detail, advice) => {
  const logged = await logOf(gateApp(options), raw);
  expect(logged).toEqual({
    detail,
    advice: advice && { issuer: ISSUER, reason: expect.any(String) as string, ...advice },
  });
});

describe('where issuer and publisher use different numbers', () => {
  /** A gate whose source has this floor of the client. */
  async function withFloor(floor: number): Promise<GateApp> {
    const generationSource = memoryGenerations({ clock: () => NOW_MS });
    await generationSource.append([['pos-17', floor]]);
    const through = gateApp({ generationSource });
    await through.gate.ready();
    return through;
  }

  it('the log says so: iat is later than the floor, and the stamped number lower', async () => {
    const floor = GENERATION + 1_000;
    const through = await withFloor(floor);
    const { detail } = await logOf(through, token({ claims: { iat: NOW - 10 } }));
    expect(detail).toBe(
      `generation ${GENERATION} is below the floor ${floor}, and iat is later than the floor: issuer and publisher use different numbers; the publisher must publish the number that the issuer stamps`,
    );
  });

  it.each([
    ['a token that was issued before the change', NOW - 120, GENERATION],
    ['a counter', NOW - 10, 7],
  ])('and does not where it is %s', async (_what, iat, generation) => {
    const through = await withFloor(GENERATION + 1_000);
    const { detail } = await logOf(through, token({ claims: { iat, generation } }));
    expect(detail).toBe(`generation ${generation} is below the floor ${GENERATION + 1_000}`);
  });

  it('the log names the option where a floor is a counter, and the token has no number', async () => {
    const { detail, advice } = await logOf(await withFloor(5), token(without('generation')));
    expect(detail).toBe(
      'the floor 5 is not a time in ms: iat cannot be compared with it, name the claim that holds this number with generationClaim (TILLGATE_GENERATION_CLAIM)',
    );
    expect(advice).toEqual({
      issuer: ISSUER,
      reason: 'generation_missing',
      why: 'the claim of the generation is null, or a floor of the client is not a time in ms: have the authorization server stamp a number and name its claim with generationClaim (TILLGATE_GENERATION_CLAIM), or publish times in ms',
    });
  });
});

describe('an introspection endpoint that refuses one client', () => {
  const answer = (error: string): GateAppOptions['fetch'] => {
    return (_url, init) => {
      const asked = new URLSearchParams(init?.body as string).get('token');
      return Promise.resolve(
        asked === 'good' ? Response.json({ error }, { status: 400 }) : Response.json({ active: false }),
      );
    };
  };

  it.each([
    ['its error by its name in RFC 6749', 'unauthorized_client', ' (unauthorized_client)'],
    ['no other text of it', 'the secret is geheim', ''],
  ])('the log shows %s', async (_what, error, shown) => {
    const opaque = { url: `${ISSUER}/introspect`, clientId: 'api', clientSecret: 'secret' };
    const through = gateApp({ opaque, keys: jwks(testKey()), fetch: answer(error) });
    const { detail } = await logOf(through, 'good');
    expect(detail).toBe(`${ISSUER}/introspect responded with 400${shown}`);
    await through.gate.close();
  });
});

it('the log names the proxy where the metadata names the issuer without TLS', async () => {
  const document = { issuer: ISSUER.replace('https', 'http'), jwks_uri: `${ISSUER}/jwks` };
  const through = gateApp({ fetch: () => Promise.resolve(Response.json(document)) });
  await through.get(exactly(goodClaims(), 'at+jwt')).expect(503);
  await eventually(() => through.log.at('warn').length > 0);
  expect(through.log.at('warn')[0]?.fields['detail']).toBe(
    `${ISSUER}/.well-known/openid-configuration names another issuer: expected "${ISSUER}", got "http://login.test"; behind a proxy that ends TLS the server must read the forwarded headers, or be told its public URL`,
  );
  await through.gate.close();
});
