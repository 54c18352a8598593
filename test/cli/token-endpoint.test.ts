import { cliScene, json } from './harness';
import type { Outcome, SentRequest } from './harness';

const REALM = 'https://login.test/realms/shop';
const ENDPOINT = `${REALM}/protocol/openid-connect/token`;
const METADATA = { issuer: REALM, token_endpoint: ENDPOINT };

/** `tillgate token` at another authorization server, whose document at `path` is `metadata`. */
async function tokenWith(
  metadata: object,
  {
    env = {},
    path = '/realms/shop/.well-known/openid-configuration',
    argv = [],
    response = { access_token: 'aaa.bbb.ccc' },
  }: {
    readonly env?: Record<string, string>;
    readonly path?: string;
    readonly argv?: readonly string[];
    readonly response?: object;
  } = {},
): Promise<Outcome & { readonly sent: readonly SentRequest[] }> {
  const { run, sent } = cliScene({
    env: { TILLGATE_AUTH_URL: REALM, ...env },
    respond({ method, url }) {
      if (method === 'POST') return json(200, response);
      return new URL(url).pathname === path ? json(200, metadata) : json(404, {});
    },
  });
  return { ...(await run('token', 'till', '--secret', 's', ...argv)), sent };
}

describe('the token endpoint', () => {
  it.each([
    ['OpenID Connect Discovery', '/realms/shop/.well-known/openid-configuration'],
    ['RFC 8414', '/.well-known/oauth-authorization-server/realms/shop'],
  ])('is the one of the metadata by %s; without --scope the server decides', async (_what, path) => {
    const { exitCode, stdout, stderr, sent } = await tokenWith(METADATA, { path });
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: 'aaa.bbb.ccc\n', stderr: '' });
    const { method, url, body } = sent.at(-1)!;
    expect([method, url, body]).toEqual([
      'POST',
      ENDPOINT,
      'grant_type=client_credentials&client_id=till&client_secret=s',
    ]);
  });

  it('is asked for the scopes of --scope', async () => {
    const { sent } = await tokenWith(METADATA, { argv: ['--scope', 'orders:read'] });
    expect(new URLSearchParams(sent.at(-1)?.body).get('scope')).toBe('orders:read');
  });

  it.each([
    [
      'of another issuer',
      { ...METADATA, issuer: 'https://login.test/realms/other' },
      `${REALM}/.well-known/openid-configuration names another issuer: expected "${REALM}", got "https://login.test/realms/other"`,
    ],
    [
      'without TLS',
      { ...METADATA, token_endpoint: 'http://login.test/token' },
      `${REALM}/.well-known/openid-configuration names a token_endpoint that is neither https: nor on loopback, or that has user info`,
    ],
    [
      'with user info',
      { ...METADATA, token_endpoint: 'https://user:geheim@login.test/token' },
      `${REALM}/.well-known/openid-configuration names a token_endpoint that is neither https: nor on loopback, or that has user info`,
    ],
    ['that is not there', { issuer: REALM }, `${REALM}/.well-known/openid-configuration has no usable token_endpoint`],
  ])('%s gets no secret', async (_what, metadata, why) => {
    const { exitCode, stdout, stderr, sent } = await tokenWith(metadata);
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `tillgate: no token endpoint: ${why}; check TILLGATE_AUTH_URL, and TILLGATE_ISSUER, which its metadata must name to the byte\n`,
    });
    expect(sent.map(({ method }) => method)).not.toContain('POST');
  });

  it.each([
    ['on loopback', { ...METADATA, token_endpoint: 'http://127.0.0.1:9/token' }, {}],
    ['with TILLGATE_ALLOW_HTTP', { ...METADATA, token_endpoint: 'http://login.test/t' }, { TILLGATE_ALLOW_HTTP: 'on' }],
  ])('may do without TLS %s', async (_what, metadata, env) => {
    expect((await tokenWith(metadata, { env })).exitCode).toBe(0);
  });

  it('whose response has no token is named', async () => {
    const { exitCode, stderr } = await tokenWith(METADATA, { response: [] });
    expect([exitCode, stderr]).toEqual([
      1,
      `tillgate: no token for till: POST ${ENDPOINT}: its response has no access_token\n`,
    ]);
  });
});
