import type { AuthServer, ClientWithSecret } from './auth-server';
import { allOperations } from '@tillgate/testing/internal';
import type { Settings } from 'tillgate/env';
import type { ApiFacts } from './token-server';
import type { Samples } from './banner';
import { hasCredentials, keepCredential, keptCredential } from './credentials';

const FAMILIES = ['orders', 'items', 'menus', 'payments'];
/** The demo client that examples use. */
const DEMO_TILL = 'pos-terminal';
const DEMO_KIOSK = 'kiosk';

/**
 * Registers two clients at the first start and returns them with their secrets; later starts return none. A till and a
 * kiosk that only reads are enough to see a 200, a 403 and a discarded token.
 *
 * @param scopes - scopes that clients may have; `undefined`: any
 */
export async function registerDemoClients(
  tokens: AuthServer,
  settings: Settings,
  scopes: readonly string[] | undefined,
): Promise<readonly ClientWithSecret[]> {
  if (await hasCredentials(settings)) return [];
  const usual = FAMILIES.flatMap((family) => [`${family}:read`, `${family}:write`]);
  const till = scopes && !usual.every((scope) => scopes.includes(scope)) ? scopes : usual;
  const kiosk = till.filter((scope) => /\bread$/.test(scope));
  const demos = [{ client_id: DEMO_TILL, description: 'Demo till', scope: till.join(' ') }];
  if (kiosk.length > 0 && kiosk.length < till.length) {
    demos.push({ client_id: DEMO_KIOSK, description: 'Demo kiosk', scope: kiosk.join(' ') });
  }
  const known = new Set(tokens.list().map(({ client_id }) => client_id));
  const registered: ClientWithSecret[] = [];
  // A client that is registered already keeps its secret.
  for (const demo of demos.filter(({ client_id }) => !known.has(client_id))) {
    const client = await tokens.register(demo);
    await keepCredential(settings, client.client_id, client);
    registered.push(client);
  }
  return registered;
}

/** The operations of a document that need a token. */
export function protectedRoutes(document: Parameters<typeof allOperations>[0]): ApiFacts['routes'] {
  return allOperations(document)
    .filter(({ access }) => access === 'token')
    .map(({ method, path, security }) => ({ method, path, requires: security }));
}

/** Requests that work with the demo clients: one that is allowed, one that the kiosk is denied. */
export async function samplesOf(routes: ApiFacts['routes'], settings: Settings): Promise<Samples> {
  const known = routes.filter(({ path }) => !path.includes('{'));
  // The examples of the documentation, where the API has them.
  known.sort((a, b) => Number(b.path === '/v1/orders') - Number(a.path === '/v1/orders'));
  const [till, kiosk] = await Promise.all([DEMO_TILL, DEMO_KIOSK].map((id) => keptCredential(settings, id)));
  const may = (client: typeof till, requires: readonly (readonly string[])[]): boolean =>
    requires.some((scopes) => scopes.every((scope) => client?.scope.split(' ').includes(scope)));
  const allowed = known.find(({ method, requires }) => method === 'GET' && may(till, requires));
  const needed = allowed?.requires.find((scopes) => may(till, [scopes])) ?? [];
  return {
    allowed: allowed?.path,
    // A blank of a form is a plus.
    scope: needed.join('+') || (till?.scope.split(' ')[0] ?? ''),
    denied: known.find(
      ({ method, requires }) => kiosk && method === 'POST' && requires.length > 0 && !may(kiosk, requires),
    )?.path,
  };
}
