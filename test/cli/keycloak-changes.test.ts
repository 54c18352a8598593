import { keycloakChanges } from '../../src/cli/bridge/keycloak';
import type { KeycloakChangesOptions } from '../../src/cli/bridge/keycloak';
import { event, fakeKeycloak, NOW_MS, REALM } from '../support/fake-keycloak';

let server: ReturnType<typeof fakeKeycloak>;
let reports: ReturnType<typeof keycloakChanges>;
beforeEach(() => {
  server = fakeKeycloak();
  reports = keycloakChanges(server.options);
});

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
  server.events.push(event(operation, path));
  const { changes } = await reports.read(undefined);
  expect(changes).toEqual(expected ? [{ clientId: 'till-1', changedAtMs: NOW_MS }] : []);
});

it('reads all pages, and returns changes in the order of time', async () => {
  for (let at = 0; at < 250; at++) server.events.push(event('UPDATE', 'clients/u-1', at));
  const { changes, cursor } = await reports.read(undefined);
  expect(changes.map(({ changedAtMs }) => changedAtMs - NOW_MS)).toEqual(Array.from({ length: 250 }, (_, at) => at));
  expect(cursor.sinceMs).toBe(NOW_MS + 249);
});

it('continues from a cursor: neither lost nor repeated, also where an event becomes visible late', async () => {
  server.events.push(event('UPDATE', 'clients/u-1'));
  const { cursor } = await reports.read(undefined);
  expect((await reports.read(cursor)).changes).toEqual([]);
  server.events.unshift(event('UPDATE', 'clients/u-1', -30_000));
  const next = await reports.read(JSON.parse(JSON.stringify(cursor)) as typeof cursor);
  expect(next.changes).toEqual([{ clientId: 'till-1', changedAtMs: NOW_MS - 30_000 }]);
});

it('returns the same changes again to a caller that did not take the new cursor', async () => {
  const { cursor } = await reports.read(undefined);
  server.events.push(event('UPDATE', 'clients/u-1'));
  const [first, second] = [await reports.read(cursor), await reports.read(cursor)];
  expect(first.changes).toHaveLength(1);
  expect(second).toEqual(first);
});

it('knows the client id of a client that was deleted, as long as it has seen it once', async () => {
  const { cursor } = await reports.read(undefined);
  server.clients.set('u-2', 'till-2');
  server.events.push(event('CREATE', 'clients/u-2', 1));
  const { cursor: later } = await reports.read(cursor);
  server.clients.clear();
  ['u-1', 'u-2', 'u-3'].forEach((id, index) => server.events.push(event('DELETE', `clients/${id}`, 2 + index)));
  const { changes, problems } = await reports.read(later);
  expect(changes.map(({ clientId }) => clientId)).toEqual(['till-1', 'till-2']);
  expect(problems).toEqual(['Keycloak no longer knows the client "u-3", and its events do not name it']);
});

it('names a client that was created and deleted while nobody was reading, where the realm saves representations', async () => {
  server.events.push(event('CREATE', 'clients/u-2', 1, 'till-2'), event('DELETE', 'clients/u-2', 2));
  const { changes, problems } = await reports.read(undefined);
  expect([changes, problems]).toEqual([[{ clientId: 'till-2', changedAtMs: NOW_MS + 2 }], []]);
});

it('reports a change for both ids of a client that was renamed, and for the new one after that', async () => {
  const { cursor } = await reports.read(undefined);
  server.clients.set('u-1', 'till-one');
  server.events.push(event('UPDATE', 'clients/u-1', 1));
  const renamed = await reports.read(cursor);
  expect(renamed.changes.map(({ clientId }) => clientId)).toEqual(['till-1', 'till-one']);
  server.events.push(event('ACTION', 'clients/u-1/client-secret', 2));
  const saved = JSON.parse(JSON.stringify(renamed.cursor)) as typeof cursor;
  const later = await keycloakChanges(server.options).read(saved);
  expect(later.changes.map(({ clientId }) => clientId)).toEqual(['till-one']);
});

it('reports no change for a client called *, and says to rename it', async () => {
  server.clients.set('u-2', '*');
  server.events.push(event('UPDATE', 'clients/u-2', 1), event('UPDATE', 'clients/u-1', 2));
  const { changes, problems } = await reports.read(undefined);
  expect(changes.map(({ clientId }) => clientId)).toEqual(['till-1']);
  expect(problems).toEqual(['the client "u-2" is called "*", which is not a client id: rename it']);
});

it('rejects when the realm saves no admin events', async () => {
  server.replaced.set('/events/config', { adminEventsEnabled: false });
  await expect(reports.read(undefined)).rejects.toThrow('the realm saves no admin events');
});

it('returns the same cursor while there is nothing new', async () => {
  server.events.push(event('ACTION', 'clients/u-1/client-secret'));
  const { cursor } = await reports.read(undefined);
  const next = await reports.read(cursor);
  expect([next.changes, next.cursor]).toEqual([[], cursor]);
  expect(next.cursor).toBe(cursor);
});

it('reads a day back without a cursor, or as far as it is told', async () => {
  server.events.push(event('UPDATE', 'clients/u-1', -86_000_000));
  expect((await reports.read(undefined)).changes).toHaveLength(1);
  const short = keycloakChanges({ ...server.options, maxTokenAgeSeconds: 3_600 });
  expect((await short.read(undefined)).changes).toEqual([]);
});

it.each([
  [401, '/openid-connect/token responded with 401: check client id and secret'],
  [500, '/openid-connect/token responded with 500'],
])('rejects when Keycloak responds with %s, without quoting it', async (status, message) => {
  server.status = status;
  await expect(reports.read(undefined)).rejects.toThrow(message);
});

it('says which roles are missing', async () => {
  await reports.read(undefined);
  server.status = 403;
  await expect(reports.read(undefined)).rejects.toThrow(
    'events/config responded with 403: the service account needs the roles view-events and view-clients of realm-management',
  );
});

it('asks the realm of its URL, also with a slash at its end', async () => {
  await keycloakChanges({ ...server.options, url: `${REALM}/` }).read(undefined);
  const [token, config, clients, scopes, events] = server.sent;
  expect([token?.method, await token?.text()]).toEqual(['POST', 'grant_type=client_credentials']);
  expect(server.sent.map(({ url }) => url)).toEqual([
    `${REALM}/protocol/openid-connect/token`,
    'https://login.test/admin/realms/shop/events/config',
    'https://login.test/admin/realms/shop/clients?first=0&max=100',
    'https://login.test/admin/realms/shop/client-scopes',
    `https://login.test/admin/realms/shop/admin-events?dateFrom=${NOW_MS - 86_460_000}&first=0&max=100`,
  ]);
  expect(server.sent.map(({ redirect }) => redirect)).toEqual(Array(5).fill('manual'));
  for (const request of [config, clients, scopes, events])
    expect(request?.headers.get('authorization')).toBe('Bearer at-1');
});

it('gets a new token after half of its life, and after one that was refused, with encoded credentials', async () => {
  let nowMs = NOW_MS;
  reports = keycloakChanges({ ...server.options, clock: () => nowMs });
  const tokens = (): number => server.asked.filter((each) => each.includes('/token')).length;
  const { cursor } = await reports.read(undefined);
  nowMs += 29_999;
  await reports.read(cursor);
  expect(tokens()).toBe(1);
  // RFC 6749 section 2.3.1.
  expect(server.asked).toContain(`/realms/shop/protocol/openid-connect/tokenBasic ${btoa('bridge:a%3Ab')}`);
  nowMs += 1;
  await reports.read(cursor);
  expect(tokens()).toBe(2);
  server.status = 401;
  await expect(reports.read(cursor)).rejects.toThrow('events/config responded with 401: check client id and secret');
  server.status = 200;
  await reports.read(cursor);
  expect(tokens()).toBe(3);
});

it('asks for another page after a full one only', async () => {
  for (let at = 0; at < 99; at++) server.events.push(event('UPDATE', 'clients/u-1', at));
  const pagesOf = async (): Promise<number> => {
    const before = server.sent.length;
    await reports.read(undefined);
    return server.sent.slice(before).filter(({ url }) => url.includes('admin-events')).length;
  };
  expect(await pagesOf()).toBe(1);
  server.events.push(event('UPDATE', 'clients/u-1', 99));
  expect(await pagesOf()).toBe(2);
});

it('asks for a client that was updated, and ignores one that is gone', async () => {
  const { cursor } = await reports.read(undefined);
  server.clients.set('u-2', 'till-2');
  server.events.push(event('UPDATE', 'clients/u-2'), event('UPDATE', 'clients/u-2', 1));
  server.events.push(event('UPDATE', 'clients/constructor', 2), event('UPDATE', 'other/clients/u-1', 3));
  const { changes, cursor: later } = await reports.read(cursor);
  expect(changes.map(({ clientId }) => clientId)).toEqual(['till-2', 'till-2']);
  expect(later.clients).toEqual({ 'u-1': 'till-1', 'u-2': 'till-2' });
  // Each update may have renamed it.
  expect(server.asked.filter((each) => each.includes('/clients/'))).toEqual([
    '/admin/realms/shop/clients/u-2Bearer at-1',
    '/admin/realms/shop/clients/u-2Bearer at-1',
    '/admin/realms/shop/clients/constructorBearer at-1',
  ]);
});

it.each<[string, string, unknown, string]>([
  ['a token response without a token', '/token', { expires_in: 60 }, 'no access token in the response'],
  ['a token that is no string', '/token', { access_token: 1, expires_in: 60 }, 'no access token in the response'],
  ['a token without a lifetime', '/token', { access_token: 'at-1' }, 'no access token in the response'],
  ['text', '/token', 'not JSON', `${REALM}/protocol/openid-connect/token did not respond with JSON`],
  [
    'too much',
    '/clients',
    ' '.repeat(10_485_761),
    'https://login.test/admin/realms/shop/clients responded with more than 10485760 bytes',
  ],
  ['no list of clients', '/clients', {}, 'clients: not a list'],
  ['no list of events', '/admin-events', { error: 'x' }, 'admin-events: not a list'],
])('rejects when Keycloak responds with %s', async (_what, end, body, message) => {
  server.replaced.set(end, body);
  await expect(reports.read(undefined)).rejects.toMatchObject({ name: 'ReportError', message });
});

it('ignores rows that are no clients and no events of clients', async () => {
  const noClients = [null, 'x', { id: 1, clientId: 'x' }, { id: 'u-9' }];
  server.replaced.set('/clients', [...noClients, { id: 'u-1', clientId: 'till-1' }]);
  const updated = { id: 'e', time: NOW_MS, resourcePath: 'clients/u-1' };
  const bad = [{}, { ...updated, id: 1 }, { ...updated, time: '1' }];
  server.replaced.set('/admin-events', [...bad, event('UPDATE', 'clients/u-1', 7)]);
  const { changes, cursor } = await reports.read(undefined);
  expect(changes).toEqual([{ clientId: 'till-1', changedAtMs: NOW_MS + 7 }]);
  expect(cursor).toEqual({
    sinceMs: NOW_MS + 7,
    clients: { 'u-1': 'till-1' },
    scopes: { 's-1': 'orders:read' },
    seen: [expect.any(String)],
  });
});

it.each([
  [{ url: undefined }, 'option "url" must be the URL of a realm, such as https://login.example.com/realms/shop'],
  [{ url: 'https://login.test' }, 'the URL of a realm, such as https://login.example.com/realms/shop'],
  [{ url: 'https://login.test/realms/a/b' }, 'the URL of a realm'],
  [{ url: 'http://login.test/realms/shop' }, 'must be an https: URL'],
  [{ clientId: undefined }, 'option "clientId" must be the id of a client'],
  [{ clientSecret: undefined }, 'option "clientSecret" must be its secret'],
  [{ secret: 'x' }, 'unknown option "secret"'],
])('refuses %j', (changed, message) => {
  const options = { url: REALM, clientId: 'bridge', clientSecret: 'secret', ...changed } as KeycloakChangesOptions;
  expect(() => keycloakChanges(options)).toThrow(message);
});

it.each([
  ...['127.0.0.1.evil.test', '127.evil.test', 'localhost.evil.test', '127.0.0.1@evil.test', '[::1]@evil.test'],
  ...['[::1].evil.test', '0.0.0.0', '[::]'],
])('refuses http: at %s, which merely begins like a loopback host or is none', (host) => {
  const options = { url: `http://${host}/realms/shop`, clientId: 'bridge', clientSecret: 'secret' };
  expect(() => keycloakChanges(options)).toThrow('keycloakChanges(): option "url" must be');
});

it('takes http: with allowHttp, and on loopback', () => {
  const client = { clientId: 'bridge', clientSecret: 'secret' };
  expect(() => keycloakChanges({ ...client, url: 'http://login.test/realms/shop', allowHttp: true })).not.toThrow();
  expect(() => keycloakChanges({ ...client, url: 'http://127.0.0.1:8080/realms/shop' })).not.toThrow();
});
