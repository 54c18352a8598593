import request from 'supertest';
import { createConsole } from '../../../src/cli/console/console';

const REGISTERED = '2026-03-01T12:00:00.000Z';
const CHANGED_MS = Date.parse(REGISTERED) + 60_000;
const NOW_MS = CHANGED_MS + 5;
const till = {
  ...{ client_id: 'till', description: 'Till', scope: 'orders:read', disabled: false, created_at: REGISTERED },
  ...{ generation: Date.parse(REGISTERED), secrets: [{ id: 's', created_at: REGISTERED }], updated_at: REGISTERED },
};
const described = { ...till, description: 'Front door', generation: CHANGED_MS };

/** The timeline of `till` after requests to the token server, each of which leaves it in one of these states. */
async function timelineAfter(atStart: readonly (typeof till)[], ...states: (typeof till)[]): Promise<unknown> {
  let clients: readonly (typeof till)[] = [];
  const page = createConsole({
    ...{ baseUrl: 'http://api.test', issuer: 'http://login.test', audience: 'http://api.test', command: 'tillgate' },
    ...{ scopes: undefined, routes: [], docsUrl: undefined, advise: () => undefined, clock: () => NOW_MS },
    call: () => Promise.reject(new Error('not called')),
    gate: { issuer: 'http://login.test', audience: 'http://api.test', allowHttp: true },
    clients: () => clients,
  });
  const handler = page.serve((_req, res) => {
    clients = states.splice(0, 1);
    res.end('{}');
  });
  // Without a request: the demo clients of a fresh start.
  clients = atStart;
  while (states.length > 0) await request(handler).patch('/clients/till').send({});
  const { body } = await request(handler).get('/console/api/state');
  await page.close();
  return body.clients[0].timeline;
}

const registered = { generation: till.generation, at: REGISTERED, cause: 'registered' };

it('a client that is changed right after a fresh start was registered when it was, not when it was changed', async () => {
  expect(await timelineAfter([till], described)).toEqual([
    { generation: CHANGED_MS, at: new Date(NOW_MS).toISOString(), cause: 'Description changed' },
    registered,
  ]);
});

it('a client that was changed before the console was opened has both times', async () => {
  expect(await timelineAfter([described])).toEqual([
    { generation: CHANGED_MS, at: new Date(CHANGED_MS).toISOString(), cause: 'changed before the console was opened' },
    registered,
  ]);
});
