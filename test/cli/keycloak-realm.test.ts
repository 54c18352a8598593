import { keycloakChanges } from '../../src/cli/bridge/keycloak';
import { event, fakeKeycloak, NOW_MS } from '../support/fake-keycloak';

let server: ReturnType<typeof fakeKeycloak>;
let reports: ReturnType<typeof keycloakChanges>;
beforeEach(() => {
  server = fakeKeycloak();
  server.clients.set('u-2', 'Kiosk').set('u-3', '*');
  reports = keycloakChanges(server.options);
});

const ALL = ['till-1', 'Kiosk'].map((clientId) => ({ clientId, changedAtMs: NOW_MS + 5 }));
const of = (operationType: string, resourcePath: string | undefined, representation?: object) => ({
  ...event(operationType, resourcePath ?? '', 5),
  resourceType: resourcePath === undefined ? 'REALM' : 'OTHER',
  ...(representation && { representation: JSON.stringify(representation) }),
});

it.each([
  ['a client scope that was deleted', of('DELETE', 'client-scopes/s-1'), ALL],
  ['one that was renamed, by its representation', of('UPDATE', 'client-scopes/s-1', { name: 'x' }), ALL],
  ['one with a new description', of('UPDATE', 'client-scopes/s-1', { name: 'orders:read', description: 'x' }), []],
  ['one with a new description, without representation', of('UPDATE', 'client-scopes/s-1'), []],
  ['one with a new mapper', of('CREATE', 'client-scopes/s-1/protocol-mappers/models/m-1'), []],
  ['one that was created', of('CREATE', 'client-scopes/s-2', { name: 'items:read' }), []],
  ['"sign out all sessions"', of('ACTION', 'logout-all'), ALL],
  ['"not before", pushed', of('ACTION', 'push-revocation'), ALL],
  ['another "not before"', of('UPDATE', undefined, { notBefore: (NOW_MS + 9_000) / 1000 }), ALL],
  ['a realm without "not before"', of('UPDATE', undefined, { notBefore: 0 }), []],
  [
    'a service account that was disabled',
    of('UPDATE', 'users/a-1', { username: 'service-account-kiosk', enabled: false }),
    [ALL[1]],
  ],
  ['one that was enabled', of('UPDATE', 'users/a-1', { username: 'service-account-kiosk', enabled: true }), []],
  ['a person who was disabled', of('UPDATE', 'users/a-1', { username: 'kiosk', enabled: false }), []],
  ['roles of a service account', of('CREATE', 'users/a-1/role-mappings/realm'), []],
])('%s discards for the right clients', async (_what, one, expected) => {
  const { cursor } = await reports.read(undefined);
  server.events.push(one);
  const { changes, problems, cursor: next } = await reports.read(cursor);
  expect([changes, problems]).toEqual([expected, []]);
  expect((await reports.read(next)).changes).toEqual([]);
});

it('a client scope is renamed where its name is another than the one that was listed last', async () => {
  const { cursor } = await reports.read(undefined);
  server.scopes.set('s-1', 'orders:all');
  server.events.push(of('UPDATE', 'client-scopes/s-1'));
  const renamed = await reports.read(cursor);
  expect(renamed.changes).toEqual(ALL);
  server.events.push(of('UPDATE', 'client-scopes/s-1'));
  expect((await reports.read(JSON.parse(JSON.stringify(renamed.cursor)) as typeof cursor)).changes).toEqual([]);
});

it('asks Keycloak for the user and for the realm where the realm saves no representations', async () => {
  server.replaced.set('/users/a-1', { username: 'service-account-till-1', enabled: false });
  server.replaced.set('/realms/shop', { notBefore: NOW_MS / 1000 - 60 });
  server.events.push(of('UPDATE', 'users/a-1'), of('UPDATE', undefined));
  const { changes, problems } = await reports.read(undefined);
  const [first, ...others] = changes.map(({ clientId, changedAtMs }) => [clientId, changedAtMs - NOW_MS]);
  expect([first, others, problems]).toEqual([
    ['till-1', -60_000],
    [
      ['Kiosk', -60_000],
      ['till-1', 5],
    ],
    [],
  ]);
});

it('says that it cannot tell whether "not before" has changed', async () => {
  server.events.push(of('UPDATE', undefined));
  const { changes, problems } = await reports.read(undefined);
  expect(changes).toEqual([]);
  expect(problems).toEqual([
    'the realm was changed, and its "not before" cannot be read: give the service account the role view-realm, or save representations',
  ]);
});

const CONFIG = 'https://login.test/admin/realms/shop/events/config responded with';
const BLOCKED = 'a proxy in front of Keycloak may block the admin API: let the bridge reach this URL';
const ROLES = 'the service account needs the roles view-events and view-clients of realm-management';
it.each([
  [404, 'application/json', `${CONFIG} 404: check the URL of the realm; ${BLOCKED}`],
  [403, 'application/json', `${CONFIG} 403: ${ROLES}`],
  [403, 'text/html; charset=utf-8', `${CONFIG} 403, with a page that is not Keycloak's: ${BLOCKED}`],
  [403, 'text/plain', `${CONFIG} 403: ${ROLES}; or ${BLOCKED}`],
])('reports a %s of type %s as what it is', async (status, type, message) => {
  const { fetch: ofServer = fetch } = server.options;
  const refusing: typeof ofServer = async (target, init) =>
    String(target).includes('/admin/')
      ? new Response('secret details', { status, headers: { 'content-type': type } })
      : ofServer(target, init);
  const blocked = keycloakChanges({ ...server.options, fetch: refusing });
  await expect(blocked.read(undefined)).rejects.toMatchObject({ name: 'ReportError', message });
});
