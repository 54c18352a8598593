import { AUTH_URL, cliScene, json } from './harness';
import type { Outcome, SentRequest } from './harness';
import { AUDIENCE, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';

/*
 * What `check` and `explain` say to do on a first day, where a token, a variable or the authorization server is wrong. Each
 * says the same: a reader of one must not be sent to the other.
 */

const NOW = Math.floor(Date.now() / 1000);
const TIMES = { iat: NOW - 60, exp: NOW + 3_540 };
const RFC9068 = { iss: AUTH_URL, aud: AUDIENCE, sub: 'pos-17', client_id: 'pos-17', jti: '1', scope: 'orders:read' };
const GOOD = { ...RFC9068, ...TIMES };

/** A token with these claims and no others; `typ` of its header: `null` for none. */
function tokenOf(claims: object, typ: string | null = 'at+jwt'): string {
  const { alg, kid } = testKey();
  const header = { alg, kid, ...(typ !== null && { typ }) };
  return token({ rawHeader: JSON.stringify(header), payload: JSON.stringify(claims) });
}

/** The good claims without some of them. */
function without(...names: readonly string[]): object {
  return Object.fromEntries(Object.entries(GOOD).filter(([name]) => !names.includes(name)));
}

interface Setup {
  readonly env?: Record<string, string>;
  readonly metadata?: object;
  readonly jwksUri?: string;
  readonly keys?: () => Response | undefined;
  /** Responds to introspection. */
  readonly introspect?: (token: string | null) => Response;
}

const JWKS = `${AUTH_URL}/jwks`;
const ENDPOINT = `${AUTH_URL}/introspect`;
const CREDENTIAL = { TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api', TILLGATE_INTROSPECTION_CLIENT_SECRET: 'geheim' };

async function run(setup: Setup, raw: string | undefined, ...argv: string[]): Promise<Outcome> {
  const { env, metadata, jwksUri = JWKS, keys = () => json(200, jwks(testKey())), introspect } = setup;
  function respond({ url, method, body }: SentRequest): Response | undefined {
    if (method === 'POST') return introspect?.(new URLSearchParams(body).get('token'));
    if (url === jwksUri) return keys();
    if (!url.includes('/.well-known/')) return json(401, {});
    return json(200, { issuer: AUTH_URL, jwks_uri: jwksUri, introspection_endpoint: ENDPOINT, ...metadata });
  }
  const variables = { TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: AUDIENCE, ...env };
  const outcome = await cliScene({ respond, env: variables, stdin: `${raw}\n` }).run(...argv);
  expect(outcome.stdout).not.toMatch(/check TILLGATE_PRESET|geheim/i);
  return outcome;
}

/** The lines of `check` that begin with `failed`, each with the one below it. */
async function checked(setup: Setup, raw?: string): Promise<string[]> {
  const { stdout } = await run(setup, raw, 'check', ...(raw === undefined ? [] : ['--token', '-']));
  const lines = stdout.split('\n');
  return lines.flatMap((line, index) => (line.startsWith('failed') ? [line, (lines[index + 1] ?? '').trim()] : []));
}

/** What both commands say to do about a token. */
async function adviceOn(raw: string, setup: Setup = {}): Promise<string> {
  const [, fix = '', ...more] = await checked(setup, raw);
  const { exitCode, stdout } = await run(setup, raw, 'explain', '-');
  const explained = /^what to do: (.*)$/m.exec(stdout)?.[1];
  expect([exitCode, more, explained]).toEqual([1, [], fix]);
  return fix;
}

const NO_OPTION = 'no option takes such a token, the server must add';
const WITHOUT_AUD = 'audience: false is for servers that cannot, under the presets cognito and identityserver';
const preset = (name: string): Setup => ({ env: { TILLGATE_PRESET: name } });

describe('everything that a token lacks is named at once', () => {
  it.each<[string, string, string, Setup?]>([
    [
      'OpenAuth: no iat',
      tokenOf({ iss: AUTH_URL, aud: AUDIENCE, sub: 'x', mode: 'access', exp: TIMES.exp }, null),
      `the token has no typ, the token has no iat, the token has no jti, the token has no client_id: ${NO_OPTION} iat, jti, client_id`,
    ],
    [
      'go-oauth2: aud and exp alone',
      tokenOf({ aud: AUDIENCE, exp: TIMES.exp }, 'JWT'),
      `typ is "JWT", the token has no iss, the token has no iat, the token has no sub, the token has no jti, the token has no client_id: ${NO_OPTION} iss, iat, sub, jti, client_id`,
    ],
    [
      'the same, for any server',
      tokenOf({ aud: AUDIENCE, exp: TIMES.exp }, 'JWT'),
      `the token has no iss, the token has no iat, the token has no client_id or azp or cid or appid or sub: ${NO_OPTION} iss, iat, client_id or azp or cid or appid or sub`,
      preset('jwt'),
    ],
    [
      'idpyoidc: no aud, sub, client_id',
      tokenOf({ iss: AUTH_URL, ...TIMES, jti: '1', scope: 'a' }),
      `the token has no aud, the token has no sub, the token has no client_id: the server must add aud, sub, client_id; ${WITHOUT_AUD}`,
    ],
    [
      'Keycloak: a claim with a value of its own',
      tokenOf(without('exp'), 'JWT'),
      `the token has no exp, the token has no typ: ${NO_OPTION} exp, typ`,
      preset('keycloak'),
    ],
    ['no iss', tokenOf(without('iss')), `the token has no iss: ${NO_OPTION} iss`],
    ['no exp', tokenOf(without('exp')), `the token has no exp: ${NO_OPTION} exp`],
    ['no aud', tokenOf(without('aud')), `the token has no aud: the server must add aud; ${WITHOUT_AUD}`],
    ['no sub', tokenOf(without('sub')), 'the token has no sub: set TILLGATE_PRESET=jwt, or have the server add sub'],
    ['no jti', tokenOf(without('jti')), 'the token has no jti: set TILLGATE_PRESET=jwt, or have the server add jti'],
  ])('%s', async (_what, raw, advice, setup = {}) => {
    expect(await adviceOn(raw, setup)).toBe(advice);
  });

  it.each<[string, unknown, string]>([
    ['iss', 17, 'iss is not a string'],
    ['aud', 17, 'aud is neither a string nor an array of strings'],
    ['exp', '17', 'exp is not a number'],
    ['sub', null, 'sub is not a string'],
    ['client_id', '', 'the client id is empty'],
    ['client_id', 17, 'client_id is not a string'],
    ['cnf', 'x', 'cnf is not an object'],
  ])('a claim of the wrong type is named too, and no option: %s = %j', async (claim, value, what) => {
    const fix = 'have the authorization server correct that claim, or send an access token of this API';
    expect(await adviceOn(tokenOf({ ...GOOD, [claim]: value }))).toBe(`${what}: ${fix}`);
  });
});

describe('a text that is no token', () => {
  it.each([
    ['undefined', {}],
    ['null', {}],
    ['${token}', {}],
    ['undefined', { env: CREDENTIAL, introspect: () => json(200, { active: false }) }],
  ])('%s', async (text, setup) => {
    const fix = 'look where the client reads access_token of the token response';
    expect(await adviceOn(text, setup)).toBe(`the client sent the text ${text}: it had no token: ${fix}`);
  });
});

describe('advice does not go round in a circle', () => {
  const OF_OPENIDDICT = { oi_prst: 'pos-17', oi_tkn_id: '7' };
  it.each<[string, string, string, string]>([
    [
      'openiddict',
      'no sub',
      tokenOf({ ...without('sub'), ...OF_OPENIDDICT }),
      'the token has no sub: set TILLGATE_PRESET=jwt, or have the server add sub',
    ],
    [
      'openiddict',
      'no exp',
      tokenOf({ ...without('exp'), ...OF_OPENIDDICT }),
      `the token has no exp: ${NO_OPTION} exp`,
    ],
    [
      'identityserver',
      'no exp',
      tokenOf({ ...without('exp'), scope: ['a'] }),
      `the token has no exp: ${NO_OPTION} exp`,
    ],
    [
      'keycloak',
      'no exp',
      tokenOf({ ...without('exp'), typ: 'Bearer', azp: 'pos-17' }, 'JWT'),
      `the token has no exp: ${NO_OPTION} exp`,
    ],
    [
      'identityserver',
      'typ',
      tokenOf(GOOD, 'JWT'),
      'typ is "JWT": leave AccessTokenJwtType of IdentityServer at its default, at+jwt',
    ],
    [
      'jwt',
      'typ',
      tokenOf(GOOD, 'x'),
      'typ is "x", which no preset accepts: have the issuer make access tokens by RFC 9068',
    ],
  ])('where TILLGATE_PRESET=%s is set: %s', async (name, _what, raw, advice) => {
    expect(await adviceOn(raw, preset(name))).toBe(advice);
  });

  it('recognizes IdentityServer by the key set that its metadata names, where a token is given too', async () => {
    const jwksUri = `${AUTH_URL}/.well-known/openid-configuration/jwks`;
    const raw = tokenOf(without('sub', 'jti'));
    expect(await adviceOn(raw, { jwksUri })).toBe(
      'this token looks like identityserver (the key set has a path of that vendor): set TILLGATE_PRESET=identityserver',
    );
    expect(await checked({ jwksUri, ...preset('identityserver') }, raw)).toEqual([]);
  });
});

it('a stamped number that is a text of digits is named', async () => {
  const number = String(NOW * 1000);
  expect(await adviceOn(tokenOf({ ...GOOD, generation: number }))).toBe(
    `claim "generation" is "${number}", a text of digits: have the authorization server stamp it as a number`,
  );
});

describe('an encrypted token', () => {
  const advice =
    'the token is encrypted (JWE, five parts): set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET, or have the issuer sign access tokens and not encrypt them (JWS)';

  it('has two ways out', async () => {
    expect(await adviceOn('a.b.c.d.e')).toBe(advice);
  });

  it("of OpenIddict, whose key set's URL shows it, has its call", async () => {
    const jwksUri = `${AUTH_URL}/.well-known/jwks`;
    expect(await adviceOn('a.b.c.d.e', { jwksUri })).toBe(`${advice} (OpenIddict: DisableAccessTokenEncryption())`);
  });
});

describe('a server behind a proxy that ends TLS', () => {
  const HTTP = AUTH_URL.replace('https:', 'http:');
  const DOCUMENT = `${AUTH_URL}/.well-known/openid-configuration`;
  const PROXY = 'behind a proxy that ends TLS the server must read the forwarded headers, or be told its public URL';

  it.each([
    [
      'names a key set on http:',
      { jwks_uri: `${HTTP}/jwks` },
      `${DOCUMENT} names a jwks_uri that is neither https: nor on loopback, or that has user info: ${HTTP}/jwks; ${PROXY}`,
    ],
    [
      'names itself by http:',
      { issuer: HTTP },
      `${DOCUMENT} names another issuer: expected "${AUTH_URL}", got "${HTTP}"; ${PROXY}`,
    ],
  ])('%s: that is to be repaired there', async (_what, metadata, problem) => {
    expect(await checked({ metadata })).toEqual([
      `failed  issuer: ${problem}`,
      'repair that at the server: no variable helps',
    ]);
  });

  it('stamps http: into its tokens', async () => {
    const setup = { env: { TILLGATE_JWKS_URI: JWKS, TILLGATE_ISSUER: AUTH_URL } };
    expect(await adviceOn(tokenOf({ ...GOOD, iss: HTTP }), setup)).toBe(
      `iss is "${HTTP}", expected "${AUTH_URL}" (http and https): ${PROXY}`,
    );
  });
});

describe('the key set', () => {
  const FETCH = 'check that the key set can be fetched from here';
  const KEY = 'the key set needs at least one public signature key (RFC 7517)';
  const encryption = { ...testKey().jwk, use: 'enc' };
  it.each<[string, () => Response | undefined, string, string]>([
    ['cannot be reached', () => undefined, 'could not be fetched (ECONNREFUSED)', FETCH],
    ['does not exist', () => json(404, {}), 'responded with 404', FETCH],
    ['is a page', () => new Response('<html>'), 'did not respond with a JSON object', FETCH],
    ['is empty', () => json(200, { keys: [] }), 'is not a key set with keys in it', KEY],
    [
      'has encryption keys alone',
      () => json(200, { keys: [encryption] }),
      'has no key that can verify access tokens',
      KEY,
    ],
  ])('%s', async (_what, keys, problem, fix) => {
    expect(await checked({ keys })).toEqual([`failed  keys: ${JWKS} ${problem}`, fix]);
  });
});

describe('a client that may not introspect', () => {
  /** OpenIddict: a text that is no token is inactive for every client. */
  const introspect = (raw: string | null): Response =>
    raw === 'reference' ? json(400, { error: 'unauthorized_client' }) : json(200, { active: false });

  it('is found with a real token only, and check says so', async () => {
    const { exitCode, stdout } = await run({ env: CREDENTIAL, introspect }, undefined, 'check');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      'ok      introspection: the endpoint accepts the client orders-api\n        whether it may introspect is seen with a real --token only\n',
    );
  });

  it('is named with the error of the endpoint', async () => {
    const setup = { env: CREDENTIAL, introspect };
    expect(await checked(setup, 'reference')).toEqual([
      `failed  token: introspection_unavailable: ${ENDPOINT} responded with 400 (unauthorized_client)`,
      await adviceOn('reference', setup),
    ]);
    expect(await adviceOn('reference', setup)).toBe(
      'the client may not introspect tokens: allow it at the authorization server (OpenIddict: Permissions.Endpoints.Introspection)',
    );
  });

  it('no other text of the endpoint is shown', async () => {
    const odd = (raw: string | null) => (raw === 'reference' ? json(400, { error: 'geheim' }) : introspect(raw));
    const [problem] = await checked({ env: CREDENTIAL, introspect: odd }, 'reference');
    expect(problem).toBe(`failed  token: introspection_unavailable: ${ENDPOINT} responded with 400`);
  });

  it('of IdentityServer is an API resource', async () => {
    const setup = { env: { ...CREDENTIAL, TILLGATE_PRESET: 'identityserver' }, introspect: () => json(401, {}) };
    const fix =
      'set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET to a client of the authorization server that may introspect tokens; at IdentityServer that is the name of the API resource and an ApiSecret of it';
    expect(await checked(setup)).toEqual([`failed  introspection: ${ENDPOINT} responded with 401`, fix]);
    const { stdout } = await run(setup, 'reference', 'explain', '-');
    expect(stdout).toContain(`\nwhat to do: ${fix}\n`);
  });
});

it.each([
  ['', {}],
  [', also where the admin token is set', { TILLGATE_ADMIN_TOKEN: 'a'.repeat(32) }],
])('a 401 of the source says where its credentials belong%s', async (_what, env) => {
  const generations = 'https://log.test/generations';
  expect(await checked({ env: { TILLGATE_GENERATIONS: generations, ...env } })).toEqual([
    `failed  generations: ${generations} responded with 401`,
    'check TILLGATE_GENERATIONS: credentials belong in its URL or in headers; TILLGATE_ADMIN_TOKEN is sent to the embedded token server alone',
  ]);
});

describe('a token without aud', () => {
  it.each(['cognito', 'identityserver', 'jwt'])(
    'names the presets under which audience: false is right: %s',
    async (name) => {
      const claims = { ...without('aud'), token_use: 'access' };
      const advice = await adviceOn(tokenOf(claims, name === 'cognito' ? null : 'at+jwt'), preset(name));
      expect(advice).toBe(`the token has no aud: have the authorization server add that of this API; ${WITHOUT_AUD}`);
    },
  );
});

describe('explain without an issuer', () => {
  const alone = (...argv: string[]) => {
    const scene = cliScene();
    return scene.run('explain', tokenOf(GOOD), ...argv).then((outcome) => ({ ...outcome, sent: scene.sent }));
  };

  it('asks no token server: the app would not start', async () => {
    const { exitCode, stdout, stderr, sent } = await alone();
    expect([exitCode, stdout, sent]).toEqual([78, '', []]);
    expect(stderr).toMatch(/TILLGATE_AUTH_URL: not set/);
  });

  it('asks that of tillgate dev on request', async () => {
    const { exitCode, sent } = await alone('--embedded');
    expect(exitCode).toBe(1);
    expect([...new Set(sent.map(({ url }) => new URL(url).origin))]).toEqual(['http://127.0.0.1:4000']);
  });
});
