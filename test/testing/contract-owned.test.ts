import express from 'express';
import type { Express, Request } from 'express';
import { authenticate, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import { listen } from '../support/listen';
import { failuresOf } from './failures-of';

const issuer = createTestIssuer();
const security = [{ oauth2: ['tabs'] }];
const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' }, 'x-owner': 'client' };
const properties = {
  note: { type: 'string' },
  pin: { type: 'string', writeOnly: true },
  paid: { type: 'boolean', readOnly: true },
};
const content = { 'application/json': { schema: { type: 'object', required: ['note'], properties } } };
const requestBody = { required: true, content };
const openapi = {
  openapi: '3.1.0',
  paths: {
    '/tabs': {
      get: { security, responses: { 200: {} } },
      post: { security, requestBody, responses: { 201: { content } } },
    },
    '/tabs/{id}': { get: { security, parameters: [id], responses: { 200: {}, 404: {} } } },
    '/settings': {
      get: { security, responses: { 200: {} } },
      put: { security, requestBody, responses: { 200: {} } },
    },
  },
  components: { securitySchemes: { oauth2: { type: 'oauth2' } } },
};

type Mistake = 'all' | 'a usual name' | 'a cached list' | 'written before' | 'a boolean' | 'a secret';

/** Tabs of the client that made them, and settings that all share. */
function tabsApp(mistake?: Mistake): Express {
  const tabs: { id: string; owner: string; note: string; paid: boolean; pin?: string }[] = [];
  let settings: unknown = { note: 'none' };
  let cached: object | undefined;
  const clientOf = (req: Request): string => String(req.auth?.clientId);
  const app = express().use(express.json());
  if (mistake === 'written before') {
    app.put('/settings', (req, _res, next) => next(void (settings = { note: (req.body as { note: string }).note })));
  }
  app.use(authenticate(issuer.options), requireScope('tabs'));
  app.post('/tabs', (req, res) => {
    const { note, pin, paid } = req.body as { note: string; pin?: string; paid?: boolean };
    const tab = {
      id: `tab_${tabs.length + 1000}`,
      owner: clientOf(req),
      note,
      paid: mistake === 'a boolean' && paid === true,
    };
    tabs.push(tab);
    res.status(201).json(mistake === 'a secret' ? { ...tab, pin: pin ?? 'none' } : tab);
  });
  app.get('/tabs', (req, res) => {
    const isAll = mistake === 'all' || (mistake === 'a usual name' && req.query['include_deleted'] === 'true');
    const data = tabs.filter(({ owner }) => isAll || owner === clientOf(req)).map((one) => ({ id: one.id }));
    if (mistake === 'a cached list')
      res.json((cached = clientOf(req).endsWith('owner') ? { data } : (cached ?? { data })));
    else res.json({ data });
  });
  app.get('/tabs/:id', (req, res) => {
    const tab = tabs.find((one) => one.id === req.params['id'] && one.owner === clientOf(req));
    if (tab) res.json({ id: tab.id });
    else res.sendStatus(404);
  });
  app.get('/settings', (_req, res) => void res.json(settings));
  return app.put('/settings', (req, res) => void res.json((settings = { note: (req.body as { note: string }).note })));
}

/** The failures in this process and over HTTP. */
async function failures(mistake?: Mistake): Promise<readonly (readonly string[])[]> {
  const app = tabsApp(mistake);
  const server = await listen(app);
  const classes = ['object', 'effect', 'property', 'leak'] as const;
  const found = [];
  for (const at of [{ app }, { url: server.url }]) {
    found.push(await failuresOf(contractCases({ ...at, openapi, issuer, classes, generations: false })));
  }
  await server.close();
  return found;
}

describe('what the document says about owners and members', () => {
  it('is green for a right API, in this process and over HTTP', async () => {
    expect(await failures()).toEqual([[], []]);
  });

  it.each([
    ['all', 'GET /tabs shows and changes only'],
    ['a usual name', 'with ?include_deleted=true'],
    ['a cached list', 'GET /tabs shows and changes only'],
    ['written before', 'PUT /settings changes nothing when it refuses'],
    ['a boolean', 'paid is readOnly, and took a value'],
    ['a secret', 'the response has "pin", which is writeOnly'],
  ] as const)('is found broken: %s', async (mistake, text) => {
    for (const found of await failures(mistake)) expect(found.join('\n')).toContain(text);
  });
});
