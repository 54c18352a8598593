import { cliScene, json } from './harness';
import type { Outcome, SentRequest } from './harness';
import { AUDIENCE, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { VENDOR_TOKENS } from '../support/vendor-tokens';

const AUTH_URL = 'https://login.test';
const NOW = Math.floor(Date.now() / 1000);
const TIMES = { iat: NOW - 60, exp: NOW + 3_540 };
const RFC9068 = { iss: AUTH_URL, aud: AUDIENCE, sub: 'pos-17', client_id: 'pos-17', jti: '1', scope: 'orders:read' };

interface Setup {
  readonly env?: Record<string, string>;
  /** Issuer in the metadata. */
  readonly issuer?: string;
  /** How far the clock of the server is ahead, in seconds. Default: it tells no time. */
  readonly ahead?: number;
}

/** Runs `tillgate check`, with a token or without one, against an authorization server. */
async function check({ env, issuer = AUTH_URL, ahead }: Setup, raw?: string): Promise<Outcome> {
  function respond({ url }: SentRequest): Response | undefined {
    const headers: Record<string, string> =
      ahead === undefined ? {} : { date: new Date(Date.now() + ahead * 1000).toUTCString() };
    if (url.includes('/.well-known/')) return json(200, { issuer, jwks_uri: `${AUTH_URL}/jwks` }, headers);
    return url === `${AUTH_URL}/jwks` ? json(200, jwks(testKey())) : json(404, {});
  }
  const scene = cliScene({
    respond,
    env: { TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: AUDIENCE, ...env },
    stdin: `${raw}\n`,
  });
  const outcome = await scene.run('check', ...(raw === undefined ? [] : ['--token', '-']));
  return outcome;
}

/** A token with these claims and no others, issued a minute ago. */
function tokenOf(claims: object, header: object = { typ: 'at+jwt' }): string {
  const { alg, kid } = testKey();
  return token({
    rawHeader: JSON.stringify({ alg, kid, ...header }),
    payload: JSON.stringify({ ...TIMES, ...claims }),
  });
}

/** A token as that vendor makes it. */
function vendorToken(preset: string): string {
  const vendor = VENDOR_TOKENS.find((each) => each.preset === preset);
  return tokenOf({ ...vendor?.claims, ...TIMES, iss: AUTH_URL }, { typ: vendor?.typ });
}

const OTHER_HOST = { TILLGATE_JWKS_URI: `${AUTH_URL}/jwks`, TILLGATE_ISSUER: AUTH_URL };

/** What is wrong; the set-up and the token; the line of the report, and the line below it that says what to do. */
const BROKEN: readonly [string, Setup, string, RegExp, RegExp][] = [
  [
    'tokens of keycloak under the default preset',
    {},
    vendorToken('keycloak'),
    /token: wrong_type: /,
    /looks like keycloak \(.+\): set TILLGATE_PRESET=keycloak$/,
  ],
  [
    'another audience',
    {},
    tokenOf({ ...RFC9068, aud: ['account', 'x'] }),
    /token: wrong_audience/,
    /aud is \["account","x"\]: set TILLGATE_AUDIENCE=account, or /,
  ],
  [
    'an issuer without the slash at the end',
    { env: OTHER_HOST },
    tokenOf({ ...RFC9068, iss: `${AUTH_URL}/` }),
    /token: wrong_issuer/,
    /\(the slash at the end\): set TILLGATE_ISSUER=https:\/\/login\.test\/$/,
  ],
  [
    'metadata of another issuer',
    { issuer: `${AUTH_URL}/` },
    tokenOf(RFC9068),
    /issuer: .* names another issuer: expected "https:\/\/login\.test", got "https:\/\/login\.test\/"/,
    /set TILLGATE_ISSUER to the issuer that it names/,
  ],
  [
    'no generation',
    {},
    tokenOf(RFC9068),
    /token: generation_missing: /,
    /the issuer stamps no generation: set TILLGATE_GENERATION_CLAIM=iat, or /,
  ],
  [
    'tokens that live too long',
    {},
    tokenOf({ ...RFC9068, exp: TIMES.iat + 100_000 }),
    /token: lifetime_too_long/,
    /tokens live for 100000 s: .* set TILLGATE_MAX_TOKEN_AGE_SECONDS=100000$/,
  ],
  [
    'an opaque token',
    {},
    'ory_at_AbCdEf',
    /token: malformed_token/,
    /the token is opaque, not a JWT: .* set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET, or /,
  ],
  [
    'a token of another server',
    {},
    token({ key: newKey('ES256', 'elsewhere'), claims: { ...RFC9068, ...TIMES } }),
    /token: unknown_key: /,
    /the key set of https:\/\/login\.test has no key "elsewhere": .*\(TILLGATE_JWKS_URI\)/,
  ],
  [
    'a token of a staging server',
    {},
    token({ key: newKey('ES256', 'elsewhere'), claims: { ...RFC9068, ...TIMES, iss: 'https://staging.test' } }),
    /token: wrong_issuer: iss is "https:\/\/staging\.test", expected "https:\/\/login\.test"; its key is unknown/,
    /request the token from the expected one, or set TILLGATE_ISSUER=https:\/\/staging\.test$/,
  ],
  [
    'a clock that is behind',
    { ahead: 120 },
    tokenOf({ ...RFC9068, generation: NOW * 1000 }),
    /clock: the clock of the authorization server is (119|120) s ahead of this one/,
    /synchronize both clocks \(NTP\), or raise TILLGATE_CLOCK_TOLERANCE_SECONDS/,
  ],
];

it.each(BROKEN)('check names the fix for %s', async (_what, setup, raw, problem, fix) => {
  const { exitCode, stdout, stderr } = await check(setup, raw);
  expect([exitCode, stderr]).toEqual([1, '']);
  const lines = stdout.split('\n');
  const failedLines = lines.filter((line) => line.startsWith('failed'));
  expect(failedLines).toEqual([expect.stringMatching(problem)]);
  expect(lines[lines.indexOf(failedLines[0] as string) + 1]).toMatch(fix);
  expect(stdout).not.toContain(raw);
});

it('check shows the claims of an accepted token that count', async () => {
  const raw = tokenOf({ ...RFC9068, generation: NOW * 1000 });
  const { exitCode, stdout } = await check({ ahead: 0 }, raw);
  expect(exitCode).toBe(0);
  expect(stdout).toContain('ok      clock: within 10 s of the clock of the authorization server\n');
  expect(stdout).toContain(
    `ok      token: accepted: client pos-17 (client_id), scopes orders:read (scope), generation ${NOW}000 (generation)\n`,
  );
});

it('check shows where the tokens of a vendor carry client, scopes and generation', async () => {
  const { exitCode, stdout } = await check({ env: { TILLGATE_PRESET: 'okta' } }, vendorToken('okta'));
  expect(exitCode).toBe(0);
  expect(stdout).toContain(
    'ok      generations: no source (TILLGATE_GENERATIONS): tokens are accepted until they expire\n',
  );
  expect(stdout).toContain(`(cid), scopes orders:read orders:write (scp), generation ${TIMES.iat}000 (iat)\n`);
});

it('check recognizes an authorization server by its issuer, without a token', async () => {
  const issuer = 'https://login.test/realms/shop';
  const { exitCode, stdout } = await check({ issuer, env: { TILLGATE_AUTH_URL: issuer } });
  expect(exitCode).toBe(0);
  expect(stdout).toContain(
    `ok      preset: rfc9068, and ${issuer} looks like keycloak: if its tokens are refused, set TILLGATE_PRESET=keycloak\n`,
  );
});
