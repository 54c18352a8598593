import type { Settings } from '../index';
import { credentialStore } from './credentials';
import { CliError } from './exit';
import type { CliIo } from './io';
import { tokenServer } from './token-server';
import type { ClientWithSecret } from './token-server';

/** A client of the first start. */
interface DemoClient {
  readonly client_id: string;
  readonly description: string;
  readonly scope: string;
}

const FAMILIES = ['orders', 'items', 'menus', 'payments'];

/** A till that reads and writes, and a kiosk that only reads: enough to see a 200, a 403 and a discarded token. */
export const DEMO_CLIENTS: readonly DemoClient[] = [
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
export async function registerDemoClients(io: CliIo, settings: Settings): Promise<readonly ClientWithSecret[]> {
  const credentials = credentialStore(settings);
  if (!(await credentials.isNew())) return [];
  const server = tokenServer(io, settings);
  const { clients: known } = await server.clients<{ clients: readonly { client_id: string }[] }>('GET', '');
  const registered: ClientWithSecret[] = [];
  for (const demo of DEMO_CLIENTS) {
    if (known.some(({ client_id }) => client_id === demo.client_id)) continue;
    const client = await server.clients<ClientWithSecret>('POST', '', demo);
    if (typeof client.client_secret !== 'string')
      throw new CliError('the token server registers clients without secrets');
    await credentials.set(client.client_id, client);
    registered.push(client);
  }
  return registered;
}
