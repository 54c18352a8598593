import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectPrivate } from '../support/private-file';
import { cliScene, failure, json, success } from './harness';
import type { CliScene, SentRequest, Outcome } from './harness';

const TILL = {
  client_id: 'till-2',
  description: 'Second till',
  scope: 'orders:read orders:write',
  disabled: false,
  generation: 1_790_000_000_000,
};
const TOKEN = { access_token: 'aaa.bbb.ccc', token_type: 'Bearer', expires_in: 3600, scope: TILL.scope };

/** A token server with one client. */
function tokenServer({ method, url, body }: SentRequest): Response | undefined {
  switch (`${method} ${new URL(url).pathname}`) {
    case 'GET /clients':
      return json(200, { clients: [TILL] });
    case 'POST /clients':
      if (body.includes('taken')) return json(409, { code: 'client_exists', detail: 'PATCH /clients/taken' });
      if (body.includes('oders')) return json(400, { code: 'invalid_request', detail: 'Unknown scope "oders"' });
      return json(201, { ...TILL, ...(JSON.parse(body) as object), client_secret: 'first-secret' });
    case 'GET /clients/till-2':
      return json(200, TILL);
    case 'PATCH /clients/till-2':
      if (body.includes('"scope"')) return json(200, { ...TILL, ...(JSON.parse(body) as object) });
      return body.includes(TILL.description) ? json(200, TILL) : json(200, { ...TILL, token: TOKEN });
    case 'POST /clients/till-2/secrets':
      return json(201, { client_id: 'till-2', client_secret: 'second-secret', generation: 1_790_000_000_001 });
    case 'POST /clients/till-2/revoke':
      return json(200, TILL);
    case 'DELETE /clients/till-2':
      return new Response(null, { status: 204 });
    case 'POST /connect/token':
      return body.includes('client_secret=wrong') ? json(401, { error: 'invalid_client' }) : json(200, TOKEN);
    default:
      return json(404, { code: 'not_found', detail: 'No client has this id.' });
  }
}

function scene(env: Record<string, string> = {}, stdin = ''): CliScene {
  return cliScene({ respond: tokenServer, env, stdin });
}

describe('clients', () => {
  it('are listed as a table', async () => {
    const table = 'CLIENT  STATE   DESCRIPTION  SCOPES\ntill-2  active  Second till  orders:read orders:write\n';
    expect(await scene().run('clients', 'list')).toEqual(success(table));
  });

  it('that are registered keep their secrets, each of which is printed before it is kept', async () => {
    const { dataDir, run } = scene();
    const ids = Array.from({ length: 8 }, (_, index) => `till-${index}`);
    for (const id of ids) await run('clients', 'add', id, '--scope', 'a');
    const kept = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as { embedded: object };
    expect(Object.keys(kept.embedded).sort()).toEqual(ids);
    expect(readdirSync(dataDir).sort()).toEqual(['.gitignore', 'credentials.json']);

    rmSync(dataDir, { recursive: true });
    writeFileSync(dataDir, 'a file where the directory should be');
    const { exitCode, stdout, stderr } = await run('clients', 'add', 'till-9', '--scope', 'a');
    expect([exitCode, stdout]).toEqual([1, 'registered till-9\nsecret, shown only now: first-secret\n']);
    expect(stderr).toMatch(/^tillgate: the secret above is valid, but could not be kept here: /);
  });

  it.each(['till+9', 'till%9', 'till:9'])(
    'are registered with a warning if libraries cannot send the id: %s',
    async (id) => {
      const warning =
        'the id has one of + % : and many client libraries do not form-encode it for HTTP Basic; they get invalid_client';
      const { exitCode, stdout } = await scene().run('clients', 'add', id, '--scope', 'a');
      expect([exitCode, stdout]).toEqual([
        0,
        `registered ${id}\nsecret, shown only now: first-secret\nwarning: ${warning}\n`,
      ]);
      const asJson = await scene().run('clients', 'add', id, '--scope', 'a', '--json');
      expect(JSON.parse(asJson.stdout)).toMatchObject({ client_secret: 'first-secret', warning });
      const usual = await scene().run('clients', 'add', 'till-9', '--scope', 'a', '--json');
      expect(JSON.parse(usual.stdout)).not.toHaveProperty('warning');
    },
  );

  it('are listed as one JSON document', async () => {
    const { stdout } = await scene().run('clients', 'list', '--json');
    expect(JSON.parse(stdout)).toEqual([TILL]);
  });

  it('are registered; the secret is shown once and kept for its owner only', async () => {
    const { dataDir, sent, run } = scene();

    const { exitCode, stdout } = await run('clients', 'add', 'till-2', '--scope', TILL.scope, '--description', 'Till');

    expect([exitCode, stdout]).toEqual([0, 'registered till-2\nsecret, shown only now: first-secret\n']);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({ client_id: 'till-2', description: 'Till', scope: TILL.scope });
    const file = join(dataDir, 'credentials.json');
    expectPrivate(file);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      embedded: { 'till-2': { client_secret: 'first-secret', scope: TILL.scope } },
    });
  });

  it('get a new token when the Description changes', async () => {
    const { stdout } = await scene().run('clients', 'describe', 'till-2', 'Till at the door');
    expect(stdout).toBe('described till-2: its earlier tokens are discarded; the new one:\naaa.bbb.ccc\n');
  });

  it('keep their tokens when the Description stays the same', async () => {
    const { stdout } = await scene().run('clients', 'describe', 'till-2', TILL.description);
    expect(stdout).toBe('till-2 has that Description already: its tokens stay\n');
  });

  it('get scopes, and lose some together with their earlier tokens', async () => {
    const { run, sent } = scene();
    const added = await run('clients', 'scopes', 'till-2', '--add', 'items:read orders:read');
    const changed = await run('clients', 'scopes', 'till-2', '--add', 'items:read', '--remove', 'orders:write');
    expect([added.stdout, changed.stdout]).toEqual([
      'till-2 has orders:read orders:write items:read\n',
      'till-2 has orders:read items:read\nits earlier tokens are discarded\n',
    ]);
    expect(sent.filter(({ method }) => method === 'PATCH').map(({ body }) => body)).toEqual([
      '{"scope":"orders:read orders:write items:read"}',
      '{"scope":"orders:read items:read"}',
    ]);
  });

  it.each([
    [[], 2, 'give --add "orders:write", --remove "orders:write", or both'],
    [['--remove', 'items:read'], 1, 'till-2 does not have items:read: it has orders:read orders:write'],
    [['--remove', 'orders:read orders:write'], 2, 'till-2 would have no scope left: clients remove till-2 deletes it'],
  ])('scopes %j changes nothing and says why', async (flags, exitCode, message) => {
    const { run, sent } = scene();
    expect(await run('clients', 'scopes', 'till-2', ...flags)).toEqual(failure(exitCode, message));
    expect(sent.map(({ method }) => method)).not.toContain('PATCH');
  });

  it('get a new secret, which is kept instead of the old one', async () => {
    const { run, sent } = scene();
    await run('clients', 'add', 'till-2', '--scope', TILL.scope);
    const { stdout } = await run('clients', 'rotate', 'till-2', '--keep-tokens', '--revoke-previous');
    await run('token', 'till-2');
    expect(stdout).toBe('new secret of till-2, shown only now: second-secret\n');
    expect(sent[1]?.body).toBe('{"keep_tokens":true,"revoke_previous":true}');
    expect(sent.at(-1)?.body).toContain('client_secret=second-secret');
  });

  it('are removed together with the kept secret', async () => {
    const { run } = scene();
    await run('clients', 'add', 'till-2', '--scope', TILL.scope);
    expect((await run('clients', 'remove', 'till-2')).stdout).toBe('removed till-2: its tokens are discarded\n');
    expect((await run('token', 'till-2')).exitCode).toBe(2);
  });

  it('are revoked', async () => {
    const { stdout } = await scene().run('revoke', 'till-2');
    expect(stdout).toBe('revoked: every token of till-2 issued so far is discarded\n');
  });

  const UNTIL = '2026-12-01T10:00:00.000Z';
  const OUT = 'earlier tokens of till-2 are refused from now on; callers that do not fetch a new one stay out until';
  it.each([
    [{ earlier_tokens_expire_at: UNTIL }, `${OUT} ${UNTIL}`],
    [{ earlier_tokens_expire_by: UNTIL }, `${OUT} ${UNTIL} at the latest`],
  ])('say what follows for callers where the token server says it: %j', async (said, outcome) => {
    const { run } = cliScene({
      respond: ({ method }) => json(200, { ...TILL, ...said, ...(method === 'PATCH' && { token: TOKEN }) }),
    });
    const described = await run('clients', 'describe', 'till-2', 'Till at the door');
    expect(described).toEqual(success(`described till-2: ${outcome}; the new one:\naaa.bbb.ccc\n`));
    expect(await run('revoke', 'till-2')).toEqual(success(`revoked: ${outcome}\n`));
  });

  it.each([
    ['clients add', ['clients', 'add', 'till-2', '--scope', 'a']],
    ['clients describe', ['clients', 'describe', 'till-2', 'Till at the door']],
    ['clients rotate', ['clients', 'rotate', 'till-2']],
    ['revoke', ['revoke', 'till-2']],
  ])('%s: a change that is not published yet has a warning', async (_what, argv) => {
    const unpublished = cliScene({
      respond: ({ method }) =>
        json(method === 'POST' ? 201 : 200, { ...TILL, client_secret: 'secret', token: TOKEN, published: false }),
    });
    const { exitCode, stdout } = await unpublished.run(...argv);
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(
      'warning: not published yet: APIs that read the generation source accept earlier tokens until it has the change',
    );
    expect(JSON.parse((await unpublished.run(...argv, '--json')).stdout)).toMatchObject({ published: false });
  });

  it('are managed with the admin token when there is one', async () => {
    const { run, sent } = scene({ TILLGATE_ADMIN_TOKEN: 'geheim-geheim-geheim' });
    await run('clients', 'list');
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer geheim-geheim-geheim');
  });

  const TAKEN = 'the id taken is taken: choose another, or give that client a new secret with';
  it.each([
    ['revoke a/../b', 'no client has the id a/../b; tillgate clients list shows those that are registered'],
    ['clients add taken --scope a', `${TAKEN} tillgate clients rotate taken`],
    ['clients add till-3 --scope oders', 'Unknown scope "oders"'],
  ])('%s: exit code 1, and what to do in commands', async (line, message) => {
    expect(await scene().run(...line.split(' '))).toEqual(failure(1, message));
  });

  it('name the variable where the token server asks for an admin token', async () => {
    const guarded = cliScene({ respond: () => json(401, { code: 'missing_token', detail: 'Authorization: Bearer' }) });
    expect((await guarded.run('clients', 'list')).stderr).toBe(
      'tillgate: the token server asks for its admin token: set TILLGATE_ADMIN_TOKEN to the one that it was started with\n',
    );
  });
});

const UNKNOWN = 'is not known here: give --secret or --secret-file; tillgate clients add registers a client,';
/** What `token` says about a client whose secret is not kept. */
const secretUnknown = (id: string) =>
  failure(2, `the secret of ${id} ${UNKNOWN} tillgate clients rotate ${id} makes a new secret`);

describe('token', () => {
  it('prints the token alone', async () => {
    const { run, sent } = scene();
    await run('clients', 'add', 'till-2', '--scope', TILL.scope);
    expect(await run('token', 'till-2')).toEqual(success('aaa.bbb.ccc\n'));
    expect(Object.fromEntries(new URLSearchParams(sent.at(-1)?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: 'till-2',
      client_secret: 'first-secret',
      scope: TILL.scope,
    });
  });

  it('reads the secret from standard input, and requests the given scopes', async () => {
    const { run, sent } = scene({}, 'piped\n');
    await run('token', 'till-2', '--secret-file', '-', '--scope', 'orders:read');
    expect(sent[0]?.body).toBe(
      'grant_type=client_credentials&scope=orders%3Aread&client_id=till-2&client_secret=piped',
    );
  });

  it('prints the whole token response as JSON', async () => {
    const { stdout } = await scene().run('token', 'till-2', '--secret', 's', '--scope', 'a', '--json');
    expect(JSON.parse(stdout)).toEqual(TOKEN);
  });

  it('exits with 1 when it is denied', async () => {
    expect(await scene().run('token', 'till-2', '--secret', 'wrong', '--scope', 'a')).toEqual(
      failure(
        1,
        'no token for till-2: invalid_client (not registered, disabled, or another secret; tillgate clients rotate till-2 makes a new one)',
      ),
    );
  });

  it('says how to register a client, and how to make a new secret', async () => {
    expect(await scene().run('token', 'unknown')).toEqual(secretUnknown('unknown'));
  });

  it('never sends a secret to a token server other than the one where it was registered', async () => {
    const { dataDir, run } = scene();
    await run('clients', 'add', 'till-2', '--scope', TILL.scope);
    const elsewhere = scene({ TILLGATE_DATA_DIR: dataDir, TILLGATE_AUTH_URL: 'https://login.example.com' });
    expect(await elsewhere.run('token', 'till-2')).toEqual(secretUnknown('till-2'));
    expect(elsewhere.sent).toEqual([]);
  });

  it('of the embedded token server is requested with the kept secret when the variables of an API name that server', async () => {
    const { dataDir, run } = scene();
    await run('clients', 'add', 'till-2', '--scope', TILL.scope);
    const next = scene({ TILLGATE_DATA_DIR: dataDir, TILLGATE_AUTH_URL: 'http://127.0.0.1:4000' });
    expect(await next.run('token', 'till-2')).toEqual(success('aaa.bbb.ccc\n'));
    const sent = next.sent.map(({ method, url }) => `${method} ${url}`);
    expect(sent).toEqual(['POST http://127.0.0.1:4000/connect/token']);
  });

  it('says what to do about a broken credentials file', async () => {
    const { dataDir, run } = scene();
    writeFileSync(join(dataDir, 'credentials.json'), '{"embedded":');
    const { exitCode, stderr } = await run('token', 'till-2');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/credentials.json is broken; remove it, then give every client a new secret/);
  });
});

const REALM = 'https://login.test/realms/shop';
const ENDPOINT = `${REALM}/protocol/openid-connect/token`;
const METADATA = { issuer: REALM, token_endpoint: ENDPOINT };

interface Elsewhere {
  readonly env?: Record<string, string>;
  /** Where its metadata is. */
  readonly path?: string;
  readonly argv?: readonly string[];
  readonly response?: object;
}

/** `tillgate token` at another authorization server with this metadata. */
async function tokenWith(
  metadata: object,
  { env, path = '/realms/shop/.well-known/openid-configuration', argv = [], response = TOKEN }: Elsewhere = {},
): Promise<{ readonly outcome: Outcome; readonly sent: readonly SentRequest[] }> {
  const { run, sent } = cliScene({
    env: { TILLGATE_AUTH_URL: REALM, ...env },
    respond({ method, url }) {
      if (method === 'POST') return json(200, response);
      return new URL(url).pathname === path ? json(200, metadata) : json(404, {});
    },
  });
  return { outcome: await run('token', 'till', '--secret', 's', ...argv), sent };
}

describe('the token endpoint', () => {
  it.each([
    ['OpenID Connect Discovery', '/realms/shop/.well-known/openid-configuration'],
    ['RFC 8414', '/.well-known/oauth-authorization-server/realms/shop'],
  ])('is the one of the metadata by %s; without --scope the server decides', async (_what, path) => {
    const { outcome, sent } = await tokenWith(METADATA, { path });
    expect(outcome).toEqual(success('aaa.bbb.ccc\n'));
    const body = 'grant_type=client_credentials&client_id=till&client_secret=s';
    expect(sent.at(-1)).toMatchObject({ method: 'POST', url: ENDPOINT, body });
  });

  it('is asked for the scopes of --scope', async () => {
    const { sent } = await tokenWith(METADATA, { argv: ['--scope', 'orders:read'] });
    expect(new URLSearchParams(sent.at(-1)?.body).get('scope')).toBe('orders:read');
  });

  const DOCUMENT = `${REALM}/.well-known/openid-configuration`;
  const NOT_SAFE = 'names a token_endpoint that is neither https: nor on loopback, or that has user info';
  const OTHER = 'https://login.test/realms/other';
  it.each([
    ['of another issuer', { issuer: OTHER }, `names another issuer: expected "${REALM}", got "${OTHER}"`],
    ['without TLS', { token_endpoint: 'http://login.test/token' }, NOT_SAFE],
    ['with user info', { token_endpoint: 'https://user:geheim@login.test/token' }, NOT_SAFE],
    ['that is not there', { token_endpoint: undefined }, 'has no usable token_endpoint'],
  ])('%s gets no secret', async (_what, changes, why) => {
    const { outcome, sent } = await tokenWith({ ...METADATA, ...changes });
    const advice = 'check TILLGATE_AUTH_URL, and TILLGATE_ISSUER, which its metadata must name to the byte';
    expect(outcome).toEqual(failure(1, `no token endpoint: ${DOCUMENT} ${why}; ${advice}`));
    expect(sent.map(({ method }) => method)).not.toContain('POST');
  });

  it.each([
    ['on loopback', { ...METADATA, token_endpoint: 'http://127.0.0.1:9/token' }, {}],
    ['with TILLGATE_ALLOW_HTTP', { ...METADATA, token_endpoint: 'http://login.test/t' }, { TILLGATE_ALLOW_HTTP: 'on' }],
  ])('may do without TLS %s', async (_what, metadata, env) => {
    expect((await tokenWith(metadata, { env })).outcome.exitCode).toBe(0);
  });

  it('whose response has no token is named', async () => {
    const { outcome } = await tokenWith(METADATA, { response: [] });
    expect(outcome).toEqual(failure(1, `no token for till: POST ${ENDPOINT}: 200, a response without a bearer token`));
  });
});
