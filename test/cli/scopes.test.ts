import { AUTH_URL, authorizationServer, cliScene, issuer } from './harness';

describe('scopes', () => {
  const ROLES = { realm_access: { roles: ['till', 'Store Manager'] } };

  /** Runs a command with a token of these claims; returns its lines. */
  async function lines(env: Record<string, string>, claims: object, ...argv: string[]): Promise<readonly string[]> {
    const scene = cliScene({
      respond: (sent) => authorizationServer(sent),
      env: { TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: issuer.audience, ...env },
      stdin: issuer.token({ scope: '', generation: Date.now(), claims: { ...claims } }),
    });
    const { stdout } = await scene.run(...argv);
    return stdout.split('\n');
  }

  const FROM_ROLES = { TILLGATE_SCOPE_CLAIMS: 'scope,realm_access.roles' };
  const MAP = '{"till":["orders:read","orders:write"]}';

  it.each<[string, Record<string, string>, object, string]>([
    [
      'claims',
      { TILLGATE_SCOPE_CLAIMS: 'permissions,roles' },
      { permissions: ['orders:read'], roles: ['menus:read'] },
      'scopes orders:read menus:read (permissions, roles)',
    ],
    [
      'claims and the map',
      { ...FROM_ROLES, TILLGATE_SCOPE_MAP: MAP },
      ROLES,
      'scopes orders:read orders:write (realm_access.roles: till, Store Manager; TILLGATE_SCOPE_MAP)',
    ],
    [
      'the map',
      { TILLGATE_SCOPE_MAP: MAP },
      { scope: 'till' },
      'scopes orders:read orders:write (scope: till; TILLGATE_SCOPE_MAP)',
    ],
    [
      'claims that the token does not have',
      { TILLGATE_SCOPE_CLAIMS: 'permissions', TILLGATE_SCOPE_MAP: MAP },
      {},
      'scopes none (permissions: no names; TILLGATE_SCOPE_MAP)',
    ],
  ])('check shows the scopes that come from %s of the variables', async (_what, env, claims, scopes) => {
    const shown = await lines(env, claims, 'check', '--token', '-');
    expect(shown.find((line) => line.startsWith('ok      token: '))).toContain(`, ${scopes}, generation `);
  });

  /** What is wrong; variables and claims; the variable to set. */
  const BROKEN: readonly [string, Record<string, string>, object, string][] = [
    ['roles of the realm', {}, ROLES, 'set TILLGATE_SCOPE_CLAIMS=scope,realm_access.roles'],
    [
      'names that the map does not have',
      { ...FROM_ROLES, TILLGATE_SCOPE_MAP: '{"admin":"orders:read"}' },
      ROLES,
      `TILLGATE_SCOPE_MAP='{"till":["orders:read"]}'`,
    ],
  ];

  describe.each(BROKEN)('a token without scopes that has %s', (_what, env, claims, fix) => {
    it('is accepted, and check names the variable to set', async () => {
      const shown = await lines(env, claims, 'check', '--token', '-');
      expect(shown.find((line) => line.startsWith('ok      token: accepted: '))).toContain(fix);
    });

    it('is refused for a route, and explain names the same variable', async () => {
      const shown = await lines(env, claims, 'explain', '-', '--scope', 'orders:read');
      expect(shown.find((line) => line.startsWith('what to do: '))).toContain(fix);
      expect(shown).toContain('missing scopes: orders:read');
    });
  });
});
