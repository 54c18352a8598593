import { AUTH_URL, authorizationServer, cliScene, issuer, json } from './harness';
import type { Outcome, SentRequest } from './harness';
import { AUDIENCE, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { VENDOR_TOKENS } from '../support/vendor-tokens';

const NOW = Math.floor(Date.now() / 1000);
const TIMES = { iat: NOW - 60, exp: NOW + 3_540 };
const RFC9068 = { iss: AUTH_URL, aud: AUDIENCE, sub: 'pos-17', client_id: 'pos-17', jti: '1', scope: 'orders:read' };

interface Setup {
  readonly env?: Record<string, string>;
  /** Issuer in the metadata. */
  readonly issuer?: string;
  /** How far the clock of the server is ahead, in seconds. Default: it tells no time. */
  readonly ahead?: number;
  /** `Age` of its responses: a cache on the way has kept them. */
  readonly age?: string;
}

/** Runs `tillgate check`, with a token or without one, against an authorization server. */
function check({ env, issuer: named = AUTH_URL, ahead, age }: Setup, raw?: string): Promise<Outcome> {
  function respond({ url }: SentRequest): Response | undefined {
    const date = ahead !== undefined && { date: new Date(Date.now() + ahead * 1000).toUTCString() };
    const headers = { ...date, ...(age !== undefined && { age }) };
    if (url.includes('/.well-known/')) return json(200, { issuer: named, jwks_uri: `${AUTH_URL}/jwks` }, headers);
    return url === `${AUTH_URL}/jwks` ? json(200, jwks(testKey())) : json(404, {});
  }
  const variables = { TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: AUDIENCE, ...env };
  return cliScene({
    respond,
    env: variables,
    stdin: `${raw}
`,
  }).run('check', ...(raw === undefined ? [] : ['--token', '-']));
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

/** What is wrong; the token; the line of the report, the line below it that says what to do; the set-up. */
const BROKEN: readonly [string, string, RegExp, RegExp, Setup?][] = [
  [
    'tokens of keycloak under the default preset',
    vendorToken('keycloak'),
    /token: wrong_type: /,
    /looks like keycloak \(.+\): set TILLGATE_PRESET=keycloak$/,
  ],
  [
    'another audience',
    tokenOf({ ...RFC9068, aud: ['account', 'x'] }),
    /token: wrong_audience/,
    /aud is \["account","x"\]: set TILLGATE_AUDIENCE=x, or /,
  ],
  [
    'an issuer without the slash at the end',
    tokenOf({ ...RFC9068, iss: `${AUTH_URL}/` }),
    /token: wrong_issuer/,
    /\(the slash at the end\): set TILLGATE_ISSUER=https:\/\/login\.test\/$/,
    { env: OTHER_HOST },
  ],
  [
    'metadata of another issuer',
    tokenOf(RFC9068),
    /issuer: .* names another issuer: expected "https:\/\/login\.test", got "https:\/\/login\.test\/"/,
    /set TILLGATE_ISSUER to the issuer that it names/,
    { issuer: `${AUTH_URL}/` },
  ],
  [
    'a generation of null',
    tokenOf({ ...RFC9068, generation: null }),
    /token: generation_missing: /,
    /the claim of the generation is null, .*: have the authorization server stamp a number and name its claim with generationClaim/,
  ],
  [
    'tokens that live too long',
    tokenOf({ ...RFC9068, exp: TIMES.iat + 100_000 }),
    /token: lifetime_too_long/,
    /tokens live for 100000 s: set TILLGATE_MAX_TOKEN_AGE_SECONDS=100000, or have the issuer shorten that$/,
  ],
  [
    'an opaque token',
    'ory_at_AbCdEf',
    /token: malformed_token/,
    /the token is opaque, not a JWT: set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET, or /,
  ],
  [
    'a token of another server',
    token({ key: newKey('ES256', 'elsewhere'), claims: { ...RFC9068, ...TIMES } }),
    /token: unknown_key: /,
    /the key set of https:\/\/login\.test has no key "elsewhere": .*\(TILLGATE_JWKS_URI\)/,
  ],
  [
    'a token of a staging server',
    token({ key: newKey('ES256', 'elsewhere'), claims: { ...RFC9068, ...TIMES, iss: 'https://staging.test' } }),
    /token: wrong_issuer: iss is "https:\/\/staging\.test", expected "https:\/\/login\.test"; its key is unknown/,
    /: set TILLGATE_ISSUER=https:\/\/staging\.test, or request the token from the expected one$/,
  ],
  [
    'a clock that is behind',
    tokenOf({ ...RFC9068, generation: NOW * 1000 }),
    /clock: the clock of the authorization server is (119|120) s ahead of this one/,
    /synchronize both clocks \(NTP\), or raise TILLGATE_CLOCK_TOLERANCE_SECONDS/,
    { ahead: 120 },
  ],
];

it.each(BROKEN)('check names the fix for %s', async (_what, raw, problem, fix, setup = {}) => {
  const { exitCode, stdout, stderr } = await check(setup, raw);
  expect([exitCode, stderr]).toEqual([1, '']);
  const lines = stdout.split('\n');
  const failedLines = lines.filter((line) => line.startsWith('failed'));
  expect(failedLines).toEqual([expect.stringMatching(problem)]);
  expect(lines[lines.indexOf(failedLines[0] as string) + 1]).toMatch(fix);
  expect(stdout).not.toContain(raw);
});

it.each<[string, Setup, RegExp | undefined]>([
  ['within the tolerance', { ahead: 9 }, /^ok {6}clock: within 10 s of the clock of the authorization server$/m],
  ['behind', { ahead: -60 }, /^failed {2}clock: the clock of the authorization server is (60|61) s behind this one$/m],
  ['not told', {}, undefined],
  ['from a cache', { ahead: 60, age: '60' }, undefined],
])('check compares the clocks: %s', async (_what, setup, line) => {
  const { stdout } = await check(setup);
  expect(stdout.match(/^.*clock.*$/m)?.[0]).toEqual(line && expect.stringMatching(line));
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
    'ok      generations: no source (TILLGATE_GENERATIONS): a change of a credential becomes known with a token that has a ' +
      'higher generation; without generation tokens are accepted until they expire\n',
  );
  expect(stdout).toContain(`(cid), scopes orders:read orders:write (scp), generation ${TIMES.iat}000 (iat)\n`);
});

it('check recognizes an authorization server by its issuer, without a token', async () => {
  const realm = 'https://login.test/realms/shop';
  const { exitCode, stdout } = await check({ issuer: realm, env: { TILLGATE_AUTH_URL: realm } });
  expect(exitCode).toBe(0);
  expect(stdout).toContain("ok      preset: keycloak, by the issuer's URL; TILLGATE_PRESET=keycloak makes sure\n");
});

describe('introspection', () => {
  const ENDPOINT = `${AUTH_URL}/introspect`;
  const WITH_ENDPOINT = { introspection_endpoint: ENDPOINT };
  const CREDENTIAL = { TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api', TILLGATE_INTROSPECTION_CLIENT_SECRET: 'geheim' };

  interface Setup {
    readonly metadata?: object;
    readonly env?: Record<string, string>;
    /** Responds to introspection requests. */
    readonly introspect?: (token: string | null) => Response | undefined;
  }

  const asked: SentRequest[] = [];
  beforeEach(() => asked.splice(0));

  async function run({ metadata = WITH_ENDPOINT, env, introspect }: Setup, ...argv: string[]): Promise<Outcome> {
    const scene = cliScene({
      env: { TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: issuer.audience, ...CREDENTIAL, ...env },
      stdin: 'opaque\n',
      respond(sent) {
        if (sent.method !== 'POST') return authorizationServer(sent, metadata);
        asked.push(sent);
        return introspect ? introspect(new URLSearchParams(sent.body).get('token')) : json(200, { active: false });
      },
    });
    const outcome = await scene.run(...argv);
    expect(outcome.stdout + outcome.stderr).not.toContain('geheim');
    return outcome;
  }

  const SET_CREDENTIAL =
    /^ {8}set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET to a client /;
  const SET_URL = /^ {8}set TILLGATE_INTROSPECTION_URL to the introspection endpoint /;

  const SAYS_NOTHING = 'did not say whether the token is active';
  const MADE_UP = 'the endpoint says that a made-up token is active';
  const refusing = (status: number) => ({ introspect: () => json(status, { error: 'invalid_client' }) });
  const DISCOVERY = `${AUTH_URL}/.well-known/openid-configuration`;
  const NOT_SAFE = 'names an introspection_endpoint that is neither https: nor on loopback, or that has user info';
  const WRONG = { TILLGATE_INTROSPECTION_URL: `${AUTH_URL}/wrong?key=geheim` };
  const INSECURE = { introspection_endpoint: 'http://login.test/introspect' };
  it.each<[string, Setup, string, RegExp]>([
    ['refuses the credential with 401', refusing(401), `${ENDPOINT} responded with 401`, SET_CREDENTIAL],
    ['refuses the credential with 403', refusing(403), `${ENDPOINT} responded with 403`, SET_CREDENTIAL],
    ['refuses the credential with 400', refusing(400), `${ENDPOINT} responded with 400`, SET_CREDENTIAL],
    ['is not in the metadata', { metadata: {} }, `${DISCOVERY} has no usable introspection_endpoint`, SET_URL],
    ['is http: on another host', { metadata: INSECURE }, `${DISCOVERY} ${NOT_SAFE}`, SET_URL],
    ['does not exist', { env: WRONG, ...refusing(404) }, `${AUTH_URL}/wrong responded with 404`, SET_URL],
    ['cannot be reached', { introspect: () => undefined }, `${ENDPOINT} could not be fetched (ECONNREFUSED)`, SET_URL],
    ['is another one', { introspect: () => json(200, { keys: [] }) }, `${ENDPOINT} ${SAYS_NOTHING}`, SET_URL],
    ['says that every token is active', { introspect: () => json(200, { active: true }) }, MADE_UP, SET_URL],
  ])('check names the fix where the introspection endpoint %s', async (_what, setup, problem, fix) => {
    const { exitCode, stdout } = await run(setup, 'check');
    expect(exitCode).toBe(1);
    const lines = stdout.split('\n');
    expect(lines.filter((line) => line.startsWith('failed'))).toEqual([`failed  introspection: ${problem}`]);
    expect(lines[lines.indexOf(`failed  introspection: ${problem}`) + 1]).toMatch(fix);
  });

  it('check tries the credential with a made-up token', async () => {
    const { exitCode, stdout } = await run({}, 'check');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('ok      introspection: the endpoint accepts the client orders-api\n');
    const [sent] = asked;
    expect(asked).toHaveLength(1);
    expect(sent?.headers.get('authorization')).toBe(`Basic ${Buffer.from('orders-api:geheim').toString('base64')}`);
    expect(new URLSearchParams(sent?.body).get('token')).toMatch(/^made-up-by-tillgate-check-[\da-f-]{36}$/);
  });

  it('check asks nothing where introspection is not configured', async () => {
    const respond = (sent: SentRequest) => authorizationServer(sent, WITH_ENDPOINT);
    const scene = cliScene({ env: { TILLGATE_AUTH_URL: AUTH_URL }, respond });
    expect((await scene.run('check')).stdout).not.toContain('introspection');
    expect(scene.sent.map(({ url }) => url)).not.toContain(ENDPOINT);
  });

  const claims = { client_id: 'till', aud: issuer.audience, iat: NOW, exp: NOW + 600, scope: 'orders:read' };

  describe('an opaque token', () => {
    const introspect = (token: string | null): Response =>
      json(200, token === 'opaque' ? { active: true, ...claims, generation: NOW * 1000 } : { active: false });

    it('is shown with its client, scopes and generation', async () => {
      // Introspection responses have `scope`, also where the JWTs of the preset have another claim.
      const { exitCode, stdout } = await run(
        { introspect, env: { TILLGATE_PRESET: 'entra' } },
        'check',
        '--token',
        '-',
      );
      expect(exitCode).toBe(0);
      expect(stdout).toContain(
        `ok      token: accepted: client till (client_id), scopes orders:read (scope), generation ${NOW}000 (generation)\n`,
      );
    });

    it('is refused where the server says that it is not active', async () => {
      const { exitCode, stdout } = await run({}, 'check', '--token', '-');
      expect(exitCode).toBe(1);
      expect(stdout).toMatch(
        /^failed {2}token: inactive: .*\n {8}If new tokens are refused, name the API's client in the token's audience: .*$/m,
      );
    });

    it('is named where the endpoint fails for it alone, and with TILLGATE_KEYS=none nothing asks for keys', async () => {
      const introspectOne = (token: string | null) =>
        token === 'opaque' ? json(500, {}) : json(200, { active: false });
      const env = { TILLGATE_KEYS: 'none' };
      const { exitCode, stdout } = await run({ introspect: introspectOne, env }, 'check', '--token', '-');
      expect(exitCode).toBe(1);
      expect(stdout).toContain('ok      keys: none (TILLGATE_KEYS=none): only opaque tokens are accepted\n');
      expect(stdout).toContain('ok      introspection: the endpoint accepts the client orders-api\n');
      expect(stdout).toContain(
        `failed  token: introspection_unavailable: ${ENDPOINT} responded with 500 for this token, though it accepts the client\n`,
      );
    });

    it('with a scope claim of the wrong type is shown with the claim and its type', async () => {
      const odd = { ...claims, scope: { a: 1 }, generation: NOW * 1000 };
      const { stdout } = await run(
        { introspect: () => json(200, { active: true, ...odd }) },
        ...['explain', '-', '--scope', 'a'],
      );
      expect(stdout).toMatch(
        /^what to do: claim scope is an object, expected a text of names .*: it counts as absent$/m,
      );
    });

    it('is explained with the claims of the introspection response, and the claim that holds its roles', async () => {
      const roles = { ...claims, scope: undefined, roles: ['till'], generation: NOW * 1000 };
      const { exitCode, stdout } = await run(
        { introspect: () => json(200, { active: true, ...roles }) },
        ...['explain', '-', '--scope', 'orders:read'],
      );
      expect(exitCode).toBe(1);
      expect(stdout).toMatch(/^what to do: the token also has names in "roles"; .*: set TILLGATE_SCOPE_CLAIMS=roles$/m);
    });
  });

  it('check keeps text of tokens on its line', async () => {
    const scope = 'a\nfailed\u001b[2J';
    const introspect = (token: string | null) =>
      json(200, { ...claims, generation: NOW * 1000, active: token === 'opaque', scope });
    const { exitCode, stdout } = await run({ introspect }, 'check', '--token', '-');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('scopes a\\u000afailed\\u001b[2J (scope)');
  });
});
