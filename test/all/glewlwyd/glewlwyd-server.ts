import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newKey } from '../../support/keys';
import { collect } from '../setup/process';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';

const SCHEMA = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';
const MODULES = '/usr/lib/glewlwyd';
/** Of the administrator that the schema inserts. */
const ADMIN = { username: 'admin', password: 'password' };
const SCOPES = ['orders:read', 'orders:cancel'];

/** A glewlwyd on loopback with one client, `till-9`. */
export interface GlewlwydServer {
  /** URL of its OpenID Connect plugin, which is the issuer of its tokens. */
  readonly issuer: string;
  /** Gets a token by client credentials. */
  token(scope: string): Promise<string>;
  describeClient(description: string): Promise<void>;
  /** Signs with a new key from here on; the key set has the previous one too. */
  rotateKey(): Promise<void>;
  stop(): Promise<void>;
}

/** What this machine lacks to run glewlwyd, as one line; `undefined` when nothing. */
export function missingForGlewlwyd(): string | undefined {
  const missing = ['glewlwyd', 'sqlite3'].filter((name) => spawnSync(name, ['--version']).error);
  if (missing.length === 0) return undefined;
  return `the glewlwyd suite is skipped: ${missing.join(' and ')} not found (apt-get install glewlwyd sqlite3)`;
}

/** Starts glewlwyd of Debian's package with a database of its own, and configures it by its admin API. */
export async function startGlewlwyd(audience: string): Promise<GlewlwydServer> {
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-glewlwyd-'));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const issuer = `${origin}/api/shop`;
  const database = join(folder, 'database');
  const config = join(folder, 'glewlwyd.conf');
  execFileSync('sqlite3', [database, `.read ${SCHEMA}`]);
  await writeFile(config, configuration(origin, port, database));
  const child = spawn('glewlwyd', [`--config-file=${config}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [log, errors] = [collect(child.stdout), collect(child.stderr)];
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  await eventually('glewlwyd responds', async () => {
    if (child.exitCode !== null) throw new Error(`glewlwyd ended with ${child.exitCode}: ${errors()}${log()}`);
    return fetch(`${origin}/api/auth/`).then(
      () => true,
      () => false,
    );
  });

  const session = await logIn(origin);
  async function admin(path: string, method: string, body: object): Promise<void> {
    const headers = { cookie: session, 'content-type': 'application/json' };
    const response = await fetch(`${origin}/api${path}`, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  }

  const keys = [privateJwk('first')];
  const plugin = (): object => oidcPlugin(issuer, audience, keys);
  const client = { ...CLIENT, resource: [audience] };
  await admin('/mod/plugin/', 'POST', plugin());
  for (const name of SCOPES) {
    await admin('/scope/', 'POST', { name, display_name: name, description: name, password_required: false });
  }
  await admin('/client/', 'POST', client);

  return {
    issuer,
    async token(scope) {
      const body = new URLSearchParams({ grant_type: 'client_credentials', scope, resource: audience });
      const authorization = `Basic ${Buffer.from(`${CLIENT.client_id}:${CLIENT.password}`).toString('base64')}`;
      const response = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization }, body });
      if (!response.ok) throw new Error(`no token: ${response.status} ${await response.text()}\n${log()}`);
      return ((await response.json()) as { access_token: string }).access_token;
    },
    describeClient: (description) => admin(`/client/${CLIENT.client_id}`, 'PUT', { ...client, description }),
    async rotateKey() {
      keys.unshift(privateJwk('second'));
      await admin('/mod/plugin/shop', 'PUT', plugin());
      // A running plugin goes on with its old parameters.
      for (const action of ['disable', 'enable']) await admin(`/mod/plugin/shop/${action}`, 'PUT', {});
    },
    async stop() {
      process.off('exit', kill);
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        kill();
        await exited;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const CLIENT = {
  client_id: 'till-9',
  name: 'Till 9',
  description: 'Till 9',
  confidential: true,
  password: 'till-9-secret',
  client_secret: 'till-9-secret',
  enabled: true,
  scope: SCOPES,
  authorization_type: ['client_credentials'],
  token_endpoint_auth_method: ['client_secret_basic'],
  redirect_uri: ['https://till-9.example.com/'],
};

function configuration(origin: string, port: number, database: string): string {
  const settings = {
    port,
    bind_address: '127.0.0.1',
    external_url: origin,
    login_url: 'login.html',
    api_prefix: 'api',
    log_mode: 'console',
    log_level: 'DEBUG',
    cookie_secure: 0,
    session_expiration: 3600,
    session_key: 'SESSION',
    admin_session_authentication: 'cookie',
    profile_session_authentication: 'cookie',
    admin_scope: 'g_admin',
    profile_scope: 'g_profile',
    user_module_path: `${MODULES}/user`,
    client_module_path: `${MODULES}/client`,
    user_auth_scheme_module_path: `${MODULES}/scheme`,
    plugin_module_path: `${MODULES}/plugin`,
    use_secure_connection: false,
    secure_connection_key_file: '',
    secure_connection_pem_file: '',
    secure_connection_ca_file: '',
    hash_algorithm: 'SHA512',
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return [...lines, `database = { type = "sqlite3" path = "${database}" };`, ''].join('\n');
}

/** The first key signs. */
function oidcPlugin(issuer: string, audience: string, keys: readonly { readonly kid: string }[]): object {
  const parameters = {
    iss: issuer,
    'jwt-type': 'rsa',
    'jwt-key-size': '256',
    'jwks-private': JSON.stringify({ keys }),
    'jwks-show': true,
    'default-kid': keys[0]?.kid,
    'access-token-duration': 3600,
    'refresh-token-duration': 3600,
    'code-duration': 600,
    'refresh-token-rolling': true,
    'subject-type': 'public',
    'allow-non-oidc': true,
    'auth-type-client-enabled': true,
    'auth-type-code-enabled': false,
    'auth-type-token-enabled': false,
    'auth-type-id-token-enabled': true,
    'auth-type-none-enabled': false,
    'auth-type-password-enabled': false,
    'auth-type-refresh-enabled': false,
    'introspection-revocation-allowed': true,
    'introspection-revocation-allow-target-client': true,
    'resource-allowed': true,
    'resource-scope': Object.fromEntries(SCOPES.map((scope) => [scope, [audience]])),
    'resource-client-property': 'resource',
    'resource-scope-and-client-property': false,
    'resource-change-allowed': false,
    scope: [],
  };
  return { module: 'oidc', name: 'shop', display_name: 'shop', parameters };
}

function privateJwk(kid: string): { readonly kid: string } {
  return { ...newKey('RS256').privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } as { kid: string };
}

/** Returns the session cookie. */
async function logIn(origin: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${origin}/api/auth/`, { method: 'POST', headers, body: JSON.stringify(ADMIN) });
  const [cookie] = response.headers.getSetCookie();
  if (!response.ok || cookie === undefined) throw new Error(`glewlwyd: no session: ${response.status}`);
  return cookie.split(';')[0] ?? '';
}
