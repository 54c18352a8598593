import { SCOPES } from '../app/commerce/routes';
import type { AuthServer, ClientRegistration, ClientWithSecret } from '../auth-server/index';
import { allOperations, declaredScopes } from '../openapi/document';
import { loadDocument } from '../openapi/load';
import { isScopeToken } from '../token/scopes';
import { CliError, EXIT } from './command';
import type { CommandOptions } from './command';
import type { CredentialStore } from './credentials';

/**
 * The scopes that clients of the embedded token server may have: those of `--scopes` or `--openapi`, else those of the
 * scaffold. `undefined`: any, for an app whose scopes are not known.
 *
 * @throws CliError when the options name no scopes
 */
export function scopesOf({ app, tokenServer, scopes, openapi }: CommandOptions): readonly string[] | undefined {
  if (scopes !== undefined && openapi !== undefined)
    throw new CliError('give --scopes or --openapi, not both', EXIT.usage);
  if (scopes !== undefined) return readScopes(scopes);
  if (openapi !== undefined) return scopesOfDocument(openapi);
  return app === undefined && !tokenServer ? SCOPES : undefined;
}

function readScopes(text: string): readonly string[] {
  const scopes = text.split(/\s+/).filter((scope) => scope !== '');
  const wrong = scopes.find((scope) => !isScopeToken(scope));
  if (scopes.length > 0 && wrong === undefined) return [...new Set(scopes)];
  const got = JSON.stringify(wrong ?? text);
  throw new CliError(`expected --scopes "orders:read orders:write", got ${got}`, EXIT.usage);
}

function scopesOfDocument(file: string): readonly string[] {
  const document = loadDocument(file);
  const required = allOperations(document).flatMap(({ security }) => security.flat());
  const scopes = [...new Set([...declaredScopes(document), ...required])].sort();
  if (scopes.length > 0) return scopes;
  throw new CliError(`${file} names no scopes: declare them in its security schemes, or give --scopes`, EXIT.usage);
}

const FAMILIES = ['orders', 'items', 'menus', 'payments'];
const READ = FAMILIES.map((family) => `${family}:read`);
const READ_AND_WRITE = FAMILIES.flatMap((family) => [`${family}:read`, `${family}:write`]);

/** The demo client that examples use. */
export const DEMO_TILL = 'pos-terminal';

/** A till with all scopes and a kiosk that only reads: enough to see a 200, a 403 and a discarded token. */
function demoClients(scopes: readonly string[] | undefined): readonly ClientRegistration[] {
  const isOwn = scopes !== undefined && scopes !== SCOPES;
  const till = isOwn ? scopes : READ_AND_WRITE;
  const kiosk = isOwn ? scopes.filter((scope) => /\bread$/.test(scope)) : READ;
  return [
    { client_id: DEMO_TILL, description: 'Demo till', scope: till.join(' ') },
    ...(kiosk.length > 0 && kiosk.length < till.length
      ? [{ client_id: 'kiosk', description: 'Demo kiosk', scope: kiosk.join(' ') }]
      : []),
  ];
}

/**
 * Registers the demo clients at the first start and returns them with their secrets; later starts return none. A
 * client that is registered already keeps its secret.
 */
export async function registerDemoClients(
  tokens: Pick<AuthServer, 'list' | 'register'>,
  credentials: CredentialStore,
  scopes: readonly string[] | undefined,
): Promise<readonly ClientWithSecret[]> {
  if (!(await credentials.isNew())) return [];
  const known = new Set(tokens.list().map(({ client_id }) => client_id));
  const registered: ClientWithSecret[] = [];
  for (const demo of demoClients(scopes)) {
    if (known.has(demo.client_id)) continue;
    const client = await tokens.register(demo);
    await credentials.set(client.client_id, client);
    registered.push(client);
  }
  return registered;
}
