import type { Reason } from '../../src';
import { gateApp, remember } from '../support/gate-app';
import type { GateAppOptions } from '../support/gate-app';
import { AUDIENCE, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

type Claims = Record<string, unknown>;

async function refuses(claims: Claims, reason: Reason, options: GateAppOptions = {}): Promise<void> {
  const through = gateApp(options);
  expectRefusal(await through.get(token({ claims })), reason, through);
}

async function accepts(claims: Claims, options: GateAppOptions = {}): Promise<void> {
  await gateApp(options).get(token({ claims })).expect(200);
}

describe('claims: iss (RFC 7519 section 4.1.1) is compared byte by byte', () => {
  it.each([
    ['another issuer', 'https://evil.test'],
    ['an additional trailing slash', `${ISSUER}/`],
    ['another case', 'https://LOGIN.test'],
    ['another scheme', 'http://login.test'],
    ['an explicit default port', `${ISSUER}:443`],
    ['a blank at the end', `${ISSUER} `],
    ['an issuer of which this one is a prefix', `${ISSUER}.evil.test`],
    ['an empty one', ''],
  ])('refuses %s', (_what, iss) => refuses({ iss }, 'wrong_issuer'));

  it('refuses an issuer without the slash where the option has one', () =>
    refuses({}, 'wrong_issuer', { issuer: `${ISSUER}/` }));

  it('accepts an issuer with the slash where the option has it too', () =>
    accepts({ iss: `${ISSUER}/` }, { issuer: `${ISSUER}/` }));

  it('refuses a token without iss', () => refuses({ iss: undefined }, 'invalid_claims'));
});

describe('claims: aud (RFC 7519 section 4.1.3)', () => {
  const other = 'https://other.test';
  const rows: readonly [string, unknown, string | readonly string[], boolean][] = [
    ['a string, one expected', AUDIENCE, AUDIENCE, true],
    ['a string, among several expected', AUDIENCE, [other, AUDIENCE], true],
    ['an array, one expected', [other, AUDIENCE], AUDIENCE, true],
    ['an array, several expected, one in common', [other, AUDIENCE], ['x', AUDIENCE], true],
    ['an array of one', [AUDIENCE], [AUDIENCE], true],
    ['a string, another expected', other, AUDIENCE, false],
    ['an array, none of them expected', [other, 'x'], AUDIENCE, false],
    ['an array, several expected, none in common', [other], ['x', AUDIENCE], false],
    ['an empty array', [], AUDIENCE, false],
    ['an empty string', '', AUDIENCE, false],
    ['an additional trailing slash', `${AUDIENCE}/`, AUDIENCE, false],
    ['a string that contains the expected one', `${AUDIENCE} ${other}`, AUDIENCE, false],
    ['a part of the expected one', 'https://api', AUDIENCE, false],
  ];
  it.each(rows)('%s', async (_what, aud, audience, accepted) => {
    if (accepted) await accepts({ aud }, { audience });
    else await refuses({ aud }, 'wrong_audience', { audience });
  });

  it('refuses a token without aud', () => refuses({ aud: undefined }, 'invalid_claims'));
});

describe('claims: exp (RFC 7519 section 4.1.4)', () => {
  const exact = { clockToleranceSeconds: 0 };

  it('refuses a token at exactly its exp', () => refuses({ exp: NOW }, 'expired', exact));
  it('accepts it a millisecond before', () => accepts({ exp: NOW }, { ...exact, clock: () => NOW_MS - 1 }));
  it('accepts it just inside the tolerance', () => accepts({ exp: NOW - 9.999 }));
  it('refuses it at exactly the tolerance', () => refuses({ exp: NOW - 10 }, 'expired'));
  it('refuses it just outside the tolerance', () => refuses({ exp: NOW - 10.001 }, 'expired'));
  it('accepts a fraction of a second', () => accepts({ exp: NOW + 0.5 }, exact));
  it('refuses a token without exp', () => refuses({ exp: undefined }, 'invalid_claims'));
  it('refuses a negative exp', () => refuses({ exp: -1 }, 'expired'));
  it('refuses exp 0', () => refuses({ exp: 0 }, 'expired'));
  it('refuses an exp in milliseconds by its lifetime', () => refuses({ exp: NOW_MS + 60_000 }, 'lifetime_too_long'));
  it('refuses a huge exp by its lifetime', () => refuses({ exp: 1e308 }, 'lifetime_too_long'));

  it('refuses a cached token from its exp on', async () => {
    let now = NOW_MS;
    const through = gateApp({ ...exact, clock: () => now });
    const raw = token({ claims: { exp: NOW + 1 } });
    await remember(through, raw);
    now += 999;
    await through.get(raw).expect(200);
    now += 1;
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'expired', through);
  });
});

describe('claims: a cached signature of a token that was refused', () => {
  it('refuses it again as before, and accepts it as soon as its claims are good', async () => {
    let now = NOW_MS - 20_000;
    const through = gateApp({ clock: () => now });
    const raw = token({ claims: { iat: NOW - 100, nbf: NOW } });
    for (let times = 0; times < 3; times++) expectRefusal(await through.get(raw), 'not_yet_valid', through);
    now = NOW_MS;
    await through.get(raw).expect(200);
    now = NOW_MS + 7_200_000;
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'expired', through);
  });

  it('is never used for a token with another signature', async () => {
    const through = gateApp();
    const raw = token({ claims: { aud: 'x' } });
    for (let times = 0; times < 3; times++) expectRefusal(await through.get(raw), 'wrong_audience', through);
    const forged = `${raw.slice(0, -86)}${'A'.repeat(86)}`;
    expectRefusal(await through.get(forged), 'bad_signature', through);
  });
});

describe('claims: nbf (RFC 7519 section 4.1.5)', () => {
  it('accepts a token at exactly its nbf', () => accepts({ nbf: NOW }, { clockToleranceSeconds: 0 }));
  it('refuses it a millisecond before', () =>
    refuses({ nbf: NOW }, 'not_yet_valid', { clockToleranceSeconds: 0, clock: () => NOW_MS - 1 }));
  it('accepts it at exactly the tolerance', () => accepts({ nbf: NOW + 10 }));
  it('refuses it just outside the tolerance', () => refuses({ nbf: NOW + 10.001 }, 'not_yet_valid'));
  it('accepts a token without nbf', () => accepts({ nbf: undefined }));
  it('accepts a negative nbf', () => accepts({ nbf: -1 }));

  it('refuses a cached token when the clock steps back before its nbf', async () => {
    let now = NOW_MS;
    const through = gateApp({ clock: () => now });
    const raw = token({ claims: { nbf: NOW } });
    await remember(through, raw);
    now -= 10_001;
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'not_yet_valid', through);
  });
});

describe('claims: iat (RFC 7519 section 4.1.6) and the maximum lifetime', () => {
  const hour = { maxTokenAgeSeconds: 3_600 };

  it('refuses a token without iat: its age is unknown', () => refuses({ iat: undefined }, 'invalid_claims'));
  it('accepts an iat at exactly the tolerance ahead', () => accepts({ iat: NOW + 10 }));
  it('refuses an iat just beyond it', () => refuses({ iat: NOW + 10.001 }, 'not_yet_valid'));
  it('refuses an iat far ahead', () => refuses({ iat: NOW + 3_000 }, 'not_yet_valid'));
  it('refuses iat 0 by its lifetime', () => refuses({ iat: 0 }, 'lifetime_too_long'));
  it('refuses a negative iat by its lifetime', () => refuses({ iat: -1 }, 'lifetime_too_long'));
  it('accepts a lifetime of exactly maxTokenAgeSeconds', () => accepts({ iat: NOW, exp: NOW + 3_600 }, hour));
  it('refuses a second more', () => refuses({ iat: NOW, exp: NOW + 3_601 }, 'lifetime_too_long', hour));
  it('accepts a day by default', () => accepts({ iat: NOW, exp: NOW + 86_400 }));
  it('refuses more than a day by default', () => refuses({ iat: NOW, exp: NOW + 86_401 }, 'lifetime_too_long'));
});

describe('claims: the rfc9068 preset (RFC 9068 sections 2.1 and 2.2)', () => {
  it.each(['at+jwt', 'AT+JWT', 'At+Jwt', 'application/at+jwt', 'Application/AT+JWT'])('accepts typ %s', async (typ) => {
    await gateApp()
      .get(token({ header: { typ } }))
      .expect(200);
  });

  it.each([
    'JWT',
    'jwt',
    'at+jwt ',
    'at-jwt',
    'application/application/at+jwt',
    'text/at+jwt',
    'id+jwt',
    '',
    'dpop+jwt',
  ])('refuses typ %j', async (typ) => {
    const through = gateApp();
    expectRefusal(await through.get(token({ header: { typ } })), 'wrong_type', through);
  });

  it.each(['iss', 'exp', 'aud', 'sub', 'client_id', 'iat', 'jti'])('refuses a token without %s', (name) =>
    refuses({ [name]: undefined }, 'invalid_claims'),
  );

  it('passes the claims to the handler, deeply frozen', async () => {
    const through = gateApp();
    const response = await through.get(token({ claims: { store: { id: 'berlin-1' } } })).expect(200);
    expect(response.body.auth).toEqual({
      issuer: ISSUER,
      clientId: 'pos-17',
      subject: 'pos-17',
      tokenId: 'c0ffee',
      scopes: ['orders:read', 'orders:write'],
      generation: NOW_MS - 60_000,
      expiresAtMs: NOW_MS + 3_540_000,
      claims: expect.objectContaining({ iss: ISSUER, store: { id: 'berlin-1' } }),
    });
    const auth = through.decisions[0]?.auth;
    expect([auth, auth?.scopes, auth?.claims, auth?.claims['store']].every(Object.isFrozen)).toBe(true);
  });
});
