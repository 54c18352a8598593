import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { collect } from '../setup/process';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';

const VERSION = '26.7.3';
const REALM_FILE = join(__dirname, '../../../examples/keycloak/realm.json');
const ADMIN = { username: 'admin', password: 'admin' };

/** A Keycloak in development mode on loopback, with the realm of examples/keycloak. */
export interface KeycloakServer {
  /** URL of the realm, which is the issuer of its tokens. */
  readonly issuer: string;
  /** URL of the realm by the address at which the server listens. */
  readonly internalUrl: string;
  /** Gets a token by client credentials. */
  token(clientId: string, secret: string, scope: string): Promise<string>;
  /** Calls the admin API of the realm: path, method, body. */
  admin(path: string, method?: string, body?: object): Promise<unknown>;
  stop(): Promise<void>;
}

/** What this machine lacks to run Keycloak, as one line; `undefined` when nothing. */
export function missingForKeycloak(): string | undefined {
  const missing = ['java', 'mvn', 'unzip'].filter((name) => spawnSync(name, ['-version']).error);
  if (missing.length === 0) return undefined;
  return `the Keycloak suite is skipped: ${missing.join(' and ')} not found (apt-get install default-jre-headless maven unzip)`;
}

/** Downloads Keycloak from Maven Central unless it is in the local repository, and starts it in a folder of its own. */
export async function startKeycloak(): Promise<KeycloakServer> {
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-keycloak-'));
  run('unzip', ['-q', distribution(), '-d', folder]);
  const home = join(folder, `keycloak-${VERSION}`);
  await mkdir(join(home, 'data/import'), { recursive: true });
  await copyFile(REALM_FILE, join(home, 'data/import/shop.json'));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  // Its own name of itself is another one than the address at which it listens.
  const publicOrigin = `http://localhost:${port}`;
  const flags = ['start-dev', '--import-realm', '--http-host=127.0.0.1', `--http-port=${port}`, '--cache=local'];
  flags.push(`--hostname=${publicOrigin}`, '--hostname-backchannel-dynamic=true');
  const env = {
    ...process.env,
    // Starts with less work: the server lives for a minute.
    JAVA_OPTS: '-Xms512m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1',
    KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
    KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
  };
  // A group of its own: kc.sh starts java as a child.
  const child = spawn(join(home, 'bin/kc.sh'), flags, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const log = collect(child.stdout);
  const errors = collect(child.stderr);
  const kill = (): void => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'));
  process.once('exit', kill);
  const issuer = `${publicOrigin}/realms/shop`;
  const internalUrl = `${origin}/realms/shop`;
  await eventually(
    'Keycloak responds',
    () => {
      if (child.exitCode !== null) throw new Error(`Keycloak ended with ${child.exitCode}: ${errors()}${log()}`);
      return isUp(issuer);
    },
    240_000,
  );

  async function admin(path: string, method = 'GET', body?: object): Promise<unknown> {
    const form = new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...ADMIN });
    const token = await tokenFrom(`${origin}/realms/master`, form);
    const response = await fetch(`${origin}/admin/realms/shop${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  }

  return {
    issuer,
    internalUrl,
    admin,
    token: (clientId, secret, scope) =>
      tokenFrom(
        issuer,
        new URLSearchParams({ grant_type: 'client_credentials', client_id: clientId, client_secret: secret, scope }),
      ),
    async stop() {
      process.off('exit', kill);
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        kill();
        await exited;
      }
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Path of the zip file in Maven's local repository. */
function distribution(): string {
  const name = `keycloak-quarkus-dist-${VERSION}.zip`;
  const file = join(homedir(), '.m2/repository/org/keycloak/keycloak-quarkus-dist', VERSION, name);
  if (!existsSync(file)) {
    const artifact = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`;
    run('mvn', ['-q', '-B', 'dependency:get', `-Dartifact=${artifact}`, '-Dtransitive=false']);
  }
  return file;
}

function run(command: string, flags: readonly string[]): void {
  const { status, stderr } = spawnSync(command, flags, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${flags.join(' ')} ended with ${status}: ${stderr}`);
}

async function isUp(issuer: string): Promise<boolean> {
  try {
    return (await fetch(`${issuer}/.well-known/openid-configuration`)).ok;
  } catch {
    return false;
  }
}

async function tokenFrom(realm: string, body: URLSearchParams): Promise<string> {
  const response = await fetch(`${realm}/protocol/openid-connect/token`, { method: 'POST', body });
  const { access_token: token } = (await response.json()) as { access_token?: string };
  if (token === undefined) throw new Error(`no token: ${response.status}`);
  return token;
}
