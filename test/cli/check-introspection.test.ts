import { cliScene, json } from './harness';
import type { Outcome, SentRequest } from './harness';
import { createTestIssuer } from '../../src/testing';

const AUTH_URL = 'https://login.test';
const ENDPOINT = `${AUTH_URL}/introspect`;
const issuer = createTestIssuer({ issuer: AUTH_URL });
const keys = 'keys' in issuer.options ? issuer.options.keys : undefined;
const METADATA = { issuer: AUTH_URL, jwks_uri: `${AUTH_URL}/jwks` };
const WITH_ENDPOINT = { ...METADATA, introspection_endpoint: ENDPOINT };
const CREDENTIAL = {
  TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api',
  TILLGATE_INTROSPECTION_CLIENT_SECRET: 'geheim',
};

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
      const { url, method, body } = sent;
      if (url.includes('/.well-known/')) return json(200, metadata);
      if (url === `${AUTH_URL}/jwks`) return json(200, keys);
      if (method !== 'POST') return json(404, {});
      asked.push(sent);
      return introspect ? introspect(new URLSearchParams(body).get('token')) : json(200, { active: false });
    },
  });
  const outcome = await scene.run(...argv);
  expect(outcome.stdout + outcome.stderr).not.toContain('geheim');
  return outcome;
}

const SET_CREDENTIAL =
  /^ {8}set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET to a client /;
const SET_URL = /^ {8}set TILLGATE_INTROSPECTION_URL to the introspection endpoint /;

it.each<[string, Setup, string, RegExp]>([
  ...[401, 403, 400].map((status): [string, Setup, string, RegExp] => [
    `refuses the credential with ${status}`,
    { introspect: () => json(status, { error: 'invalid_client' }) },
    `${ENDPOINT} responded with ${status}`,
    SET_CREDENTIAL,
  ]),
  [
    'is not in the metadata',
    { metadata: METADATA },
    `${AUTH_URL}/.well-known/openid-configuration has no usable introspection_endpoint`,
    SET_URL,
  ],
  [
    'is http: on another host',
    { metadata: { ...METADATA, introspection_endpoint: 'http://login.test/introspect' } },
    `${AUTH_URL}/.well-known/openid-configuration names an introspection_endpoint that is neither https: nor on loopback, or that has user info`,
    SET_URL,
  ],
  [
    'does not exist',
    { env: { TILLGATE_INTROSPECTION_URL: `${AUTH_URL}/wrong?key=geheim` }, introspect: () => json(404, {}) },
    `${AUTH_URL}/wrong responded with 404`,
    SET_URL,
  ],
  ['cannot be reached', { introspect: () => undefined }, `${ENDPOINT} could not be fetched (ECONNREFUSED)`, SET_URL],
  [
    'is another endpoint',
    { introspect: () => json(200, { keys: [] }) },
    `${ENDPOINT} did not say whether the token is active`,
    SET_URL,
  ],
  [
    'says that every token is active',
    { introspect: () => json(200, { active: true }) },
    `${ENDPOINT} says that a made-up token is active`,
    SET_URL,
  ],
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
  expect(stdout).toContain(`ok      introspection: ${ENDPOINT} accepts the client orders-api\n`);
  const [sent] = asked;
  expect(asked).toHaveLength(1);
  expect(sent?.headers.get('authorization')).toBe(`Basic ${Buffer.from('orders-api:geheim').toString('base64')}`);
  expect(new URLSearchParams(sent?.body).get('token')).toMatch(/^made-up-by-tillgate-check-[\da-f-]{36}$/);
});

it('check asks nothing where introspection is not configured', async () => {
  const env = { TILLGATE_INTROSPECTION_URL: ENDPOINT };
  const scene = cliScene({
    env: { TILLGATE_AUTH_URL: AUTH_URL },
    respond: ({ url }) => json(200, url.endsWith('/jwks') ? keys : WITH_ENDPOINT),
  });
  const { stdout } = await scene.run('check');
  expect(stdout).not.toContain('introspection');
  expect(scene.sent.filter(({ url }) => url === env.TILLGATE_INTROSPECTION_URL)).toEqual([]);
});

describe('an opaque token', () => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { client_id: 'till', aud: issuer.audience, iat: now, exp: now + 600, scope: 'orders:read' };
  const introspect = (token: string | null): Response =>
    json(200, token === 'opaque' ? { active: true, ...claims, generation: now * 1000 } : { active: false });

  it('is shown with its client, scopes and generation', async () => {
    // Introspection responses have `scope`, also where the JWTs of the preset have another claim.
    const { exitCode, stdout } = await run({ introspect, env: { TILLGATE_PRESET: 'entra' } }, 'check', '--token', '-');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      `ok      token: accepted: client till (client_id), scopes orders:read (scope), generation ${now}000 (iat)\n`,
    );
  });

  it('is refused where the server says that it is not active', async () => {
    const { exitCode, stdout } = await run({}, 'check', '--token', '-');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed {2}token: inactive: .*\n {8}If new tokens are refused, check .*$/m);
  });

  it('is explained with the claims of the introspection response, and the claim that holds its roles', async () => {
    const roles = { ...claims, scope: undefined, roles: ['till'], generation: now * 1000 };
    const { exitCode, stdout } = await run(
      { introspect: () => json(200, { active: true, ...roles }) },
      ...['explain', '-', '--scope', 'orders:read'],
    );
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /^what to do: the token also has names in "roles": .* set TILLGATE_SCOPE_CLAIMS=roles, or /m,
    );
  });
});

it('check keeps text of tokens on its line', async () => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { client_id: 'till', aud: issuer.audience, iat: now, exp: now + 600, generation: now * 1000 };
  const scope = 'a\nfailed\u001b[2J';
  const introspect = (token: string | null) => json(200, { ...claims, active: token === 'opaque', scope });
  const { exitCode, stdout } = await run({ introspect }, 'check', '--token', '-');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('scopes a\\u000afailed\\u001b[2J (scope)');
});
