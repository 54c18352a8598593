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

type Mistake =
  | (
      | 'all'
      | 'a usual name'
      | 'a cached list'
      | 'kept by its URL'
      | 'a link'
      | 'written before'
      | 'a boolean'
      | 'a secret'
    )
  | ('looked up first' | 'a stack' | 'foreign ids');

/** Tabs of the client that made them, and settings that all share. */
function tabsApp(mistake?: Mistake): Express {
  const tabs: { id: string; owner: string; note: string; paid: boolean; pin?: string }[] = [];
  let settings: unknown = { note: 'none' };
  let cached: object | undefined;
  const byUrl = new Map<string, object>();
  const clientOf = (req: Request): string => String(req.auth?.clientId);
  const app = express().use(express.json());
  if (mistake === 'written before') {
    app.put('/settings', (req, _res, next) => next(void (settings = { note: (req.body as { note: string }).note })));
  }
  if (mistake === 'looked up first') {
    app.use('/tabs/:id', (req, res, next) => {
      if (tabs.some((one) => one.id === req.params.id)) next();
      else res.sendStatus(404);
    });
  }
  if (mistake === 'a stack') {
    app.use((req, res, next) => {
      const [, payload = ''] = (req.headers.authorization ?? '').split('.');
      const { exp = Infinity } = JSON.parse(
        /^ey/.test(payload) ? Buffer.from(payload, 'base64url').toString() : '{}',
      ) as { exp?: number };
      if (exp * 1000 > Date.now()) next();
      else res.status(401).json({ stack: new Error('expired').stack });
    });
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
    const from = tabs.findIndex(({ id: one }) => one === req.query['cursor']) + 1;
    const isNext = mistake === 'a link' && from > 0;
    const own = tabs.slice(from).filter(({ owner }) => isAll || isNext || owner === clientOf(req));
    const data = own.slice(0, Number(req.query['limit'] ?? 1000)).map((one) => ({ id: one.id }));
    if (data.length < own.length) {
      res.set(
        'Link',
        `</tabs?limit=1>; rel="first", </tabs?limit=1&cursor=${data.at(-1)?.id}>; title="more"; rel="next"`,
      );
    }
    if (mistake === 'kept by its URL') {
      byUrl.set(req.url, byUrl.get(req.url) ?? { data });
      res.json(byUrl.get(req.url));
    } else if (mistake === 'a cached list')
      res.json((cached = clientOf(req).endsWith('owner') ? { data } : (cached ?? { data })));
    else res.json({ data });
  });
  app.get('/tabs/:id', (req, res) => {
    const tab = tabs.find((one) => one.id === req.params['id'] && one.owner === clientOf(req));
    if (tab) res.json({ id: tab.id });
    else res.sendStatus(mistake === 'foreign ids' && tabs.some((one) => one.id === req.params['id']) ? 403 : 404);
  });
  app.get('/settings', (_req, res) => void res.json(settings));
  return app.put('/settings', (req, res) => void res.json((settings = { note: (req.body as { note: string }).note })));
}

/** The failures in this process and over HTTP. */
async function failures(mistake?: Mistake): Promise<readonly (readonly string[])[]> {
  const server = await listen(tabsApp(mistake));
  const classes = ['token', 'object', 'effect', 'property', 'leak', 'document'] as const;
  const found = [];
  for (const at of [{ app: tabsApp(mistake) }, { url: server.url }]) {
    const cases = contractCases({ ...at, openapi, issuer, classes, generations: false });
    const failed = await failuresOf(cases);
    found.push(mistake === 'foreign ids' ? [...failed, ...cases.report().documentation] : failed);
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
    ['kept by its URL', 'with ?all=true has what the first has made'],
    ['a link', 'has what the first has made'],
    ['looked up first', 'without a token, an unknown id gets 404, a known one 401'],
    ['a stack', 'with an expired token, the refusal contains "'],
    [
      'foreign ids',
      'refusal of a foreign id: expected the same as for an unknown one, 404 Not Found, got 403 Forbidden',
    ],
    ['written before', 'PUT /settings changes nothing when it refuses'],
    ['a boolean', 'paid is readOnly, and took a value'],
    ['a secret', 'the response has "pin", which is writeOnly'],
  ] as const)('is found broken: %s', async (mistake, text) => {
    for (const found of await failures(mistake)) expect(found.join('\n')).toContain(text);
  });
});
