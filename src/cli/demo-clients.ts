import type { AuthServer, ClientRegistration, ClientWithSecret } from '../auth-server/index';
import type { CredentialStore } from './credentials';

const FAMILIES = ['orders', 'items', 'menus', 'payments'];

/** A till that reads and writes, and a kiosk that only reads: enough to see a 200, a 403 and a discarded token. */
export const DEMO_CLIENTS: readonly ClientRegistration[] = [
  {
    client_id: 'pos-terminal',
    description: 'Demo till',
    scope: FAMILIES.flatMap((family) => [`${family}:read`, `${family}:write`]).join(' '),
  },
  { client_id: 'kiosk', description: 'Demo kiosk', scope: FAMILIES.map((family) => `${family}:read`).join(' ') },
];

/**
 * Registers the demo clients at the first start and answers them with their secrets; later starts answer none. A
 * client that is registered already is left alone: its secret is somebody's.
 */
export async function registerDemoClients(
  tokens: Pick<AuthServer, 'list' | 'register'>,
  credentials: CredentialStore,
): Promise<readonly ClientWithSecret[]> {
  if (!(await credentials.isNew())) return [];
  const known = new Set(tokens.list().map(({ client_id }) => client_id));
  const registered: ClientWithSecret[] = [];
  for (const demo of DEMO_CLIENTS) {
    if (known.has(demo.client_id)) continue;
    const client = await tokens.register(demo);
    await credentials.set(client.client_id, client);
    registered.push(client);
  }
  return registered;
}
