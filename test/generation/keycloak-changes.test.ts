import { keycloakChanges } from '../../src/generation';
import type { KeycloakChangesOptions } from '../../src/generation';

const NOW_MS = 1_800_000_000_000;
const URL = 'https://login.test/realms/shop';

interface AdminEvent {
  readonly id: string;
  readonly time: number;
  readonly operationType: string;
  readonly resourcePath: string;
}

/** A Keycloak whose admin API a test fills, with a record of the paths that were asked for. */
function keycloak(): {
  readonly clients: Map<string, string>;
  readonly events: AdminEvent[];
  readonly asked: string[];
  status: number;
  readonly options: KeycloakChangesOptions;
} {
  const clients = new Map([['u-1', 'till-1']]);
  const events: AdminEvent[] = [];
  const asked: string[] = [];
  const server = {
    clients,
    events,
    asked,
    status: 200,
    options: { url: URL, clientId: 'bridge', clientSecret: 'a:b' },
  };

  function page(rows: readonly unknown[], query: URLSearchParams): Response {
    const first = Number(query.get('first'));
    return Response.json(rows.slice(first, first + Number(query.get('max'))));
  }

  function respond({ url, headers }: Request): Response {
    const { pathname, searchParams } = new globalThis.URL(url);
    asked.push(`${pathname}${headers.get('authorization') ?? ''}`);
    if (server.status !== 200) return new Response('secret details', { status: server.status });
    if (pathname.endsWith('/token')) return Response.json({ access_token: 'at-1', expires_in: 60 });
    const rows = [...clients].map(([id, clientId]) => ({ id, clientId }));
    if (pathname.endsWith('/clients')) return page(rows, searchParams);
    if (pathname.endsWith('/admin-events')) {
      const since = Number(searchParams.get('dateFrom'));
      return page(events.filter(({ time }) => time >= since).reverse(), searchParams);
    }
    const found = rows.find(({ id }) => pathname.endsWith(`/clients/${id}`));
    return found ? Response.json(found) : new Response('', { status: 404 });
  }
  const fetch = (input: string | URL | Request, init?: RequestInit): Promise<Response> =>
    Promise.resolve(respond(new Request(input, init)));
  return Object.assign(server, { options: { ...server.options, fetch, clock: () => NOW_MS } });
}

let serial = 0;
const event = (operationType: string, resourcePath: string, at = 0): AdminEvent => {
  return { id: `e-${serial++}`, time: NOW_MS + at, operationType, resourcePath };
};

it.each([
  ['UPDATE', 'clients/u-1', true],
  ['DELETE', 'clients/u-1', true],
  ['ACTION', 'clients/u-1/client-secret', true],
  ['DELETE', 'clients/u-1/optional-client-scopes/s-1', true],
  ['CREATE', 'clients/u-1', false],
  ['CREATE', 'clients/u-1/optional-client-scopes/s-1', false],
  ['ACTION', 'clients/u-1/nodes', false],
  ['UPDATE', 'users/u-1', false],
])('%s of %s discards tokens: %s', async (operation, path, expected) => {
  const server = keycloak();
  server.events.push(event(operation, path));
  const { changes } = await keycloakChanges(server.options).read(undefined);
  expect(changes).toEqual(expected ? [{ clientId: 'till-1', changedAtMs: NOW_MS }] : []);
});

it('reads all pages, and returns changes in the order of time', async () => {
  const server = keycloak();
  for (let at = 0; at < 250; at++) server.events.push(event('UPDATE', 'clients/u-1', at));
  const { changes, cursor } = await keycloakChanges(server.options).read(undefined);
  expect(changes.map(({ changedAtMs }) => changedAtMs - NOW_MS)).toEqual(Array.from({ length: 250 }, (_, at) => at));
  expect(cursor.sinceMs).toBe(NOW_MS + 249);
});

it('continues from a cursor: neither lost nor repeated, also where an event becomes visible late', async () => {
  const server = keycloak();
  server.events.push(event('UPDATE', 'clients/u-1'));
  const feed = keycloakChanges(server.options);
  const { cursor } = await feed.read(undefined);
  expect((await feed.read(cursor)).changes).toEqual([]);
  server.events.unshift(event('UPDATE', 'clients/u-1', -30_000));
  const next = await feed.read(JSON.parse(JSON.stringify(cursor)) as typeof cursor);
  expect(next.changes).toEqual([{ clientId: 'till-1', changedAtMs: NOW_MS - 30_000 }]);
});

it('returns the same changes again to a caller that did not take the new cursor', async () => {
  const server = keycloak();
  const feed = keycloakChanges(server.options);
  const { cursor } = await feed.read(undefined);
  server.events.push(event('UPDATE', 'clients/u-1'));
  const [first, second] = [await feed.read(cursor), await feed.read(cursor)];
  expect(first.changes).toHaveLength(1);
  expect(second).toEqual(first);
});

it('knows the client id of a client that was deleted, as long as it has seen it once', async () => {
  const server = keycloak();
  const feed = keycloakChanges(server.options);
  const { cursor } = await feed.read(undefined);
  server.clients.set('u-2', 'till-2');
  server.events.push(event('CREATE', 'clients/u-2', 1));
  const { cursor: later } = await feed.read(cursor);
  server.clients.clear();
  server.events.push(
    event('DELETE', 'clients/u-1', 2),
    event('DELETE', 'clients/u-2', 3),
    event('DELETE', 'clients/u-3', 4),
  );
  const { changes } = await feed.read(later);
  expect(changes.map(({ clientId }) => clientId)).toEqual(['till-1', 'till-2']);
});

it('reads a day back without a cursor, or as far as it is told', async () => {
  const server = keycloak();
  server.events.push(event('UPDATE', 'clients/u-1', -86_000_000));
  expect((await keycloakChanges(server.options).read(undefined)).changes).toHaveLength(1);
  const short = keycloakChanges({ ...server.options, horizonMs: 3_600_000 });
  expect((await short.read(undefined)).changes).toEqual([]);
});

it('keeps its token for half of its life, and encodes its credentials as RFC 6749 section 2.3.1 says', async () => {
  const server = keycloak();
  const feed = keycloakChanges(server.options);
  await feed.read(undefined);
  await feed.read(undefined);
  const tokens = server.asked.filter((each) => each.includes('/token'));
  expect(tokens).toEqual([`/realms/shop/protocol/openid-connect/tokenBasic ${btoa('bridge:a%3Ab')}`]);
});

it.each([
  [401, 'the token endpoint: responded with 401: check client id and secret'],
  [500, 'the token endpoint: responded with 500'],
])('rejects when Keycloak responds with %s, without quoting it', async (status, message) => {
  const server = keycloak();
  server.status = status;
  await expect(keycloakChanges(server.options).read(undefined)).rejects.toThrow(message);
});

it('says which roles are missing', async () => {
  const server = keycloak();
  const feed = keycloakChanges(server.options);
  await feed.read(undefined);
  server.status = 403;
  await expect(feed.read(undefined)).rejects.toThrow(
    'clients: responded with 403: the service account needs the roles view-events and view-clients of realm-management',
  );
});

it.each([
  [{ url: 'https://login.test' }, 'option "url"'],
  [{ url: 'http://login.test/realms/shop' }, 'must be an https: URL'],
  [{ clientId: undefined }, 'option "clientId"'],
  [{ clientSecret: undefined }, 'option "clientSecret"'],
  [{ secret: 'x' }, 'secret'],
])('refuses %j', (changed, message) => {
  const options = { url: URL, clientId: 'bridge', clientSecret: 'secret', ...changed } as KeycloakChangesOptions;
  expect(() => keycloakChanges(options)).toThrow(message);
});
