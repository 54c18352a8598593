import express from 'express';
import type { Express, Request, Response } from 'express';
import { authenticate, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import { listen } from '../support/listen';
import { failuresOf } from './failures-of';

const issuer = createTestIssuer();
const security = [{ oauth: ['tabs'] }];
const owned = { type: 'string', 'x-owner': 'client' };
const responses = { 200: {}, 201: {}, 204: {}, '4XX': {} };
const inPath = (name: string) => ({
  name,
  in: 'path',
  required: true,
  'x-owner': 'client',
  schema: { type: 'string' },
});
const inQuery = (name: string, schema: object) => ({ name, in: 'query', schema });
const json = (properties: object) => ({
  content: { 'application/json': { schema: { type: 'object', required: Object.keys(properties), properties } } },
});
const lines = {
  type: 'array',
  minItems: 1,
  items: { type: 'object', required: ['tab_id', 'share'], properties: { tab_id: owned, share: { type: 'integer' } } },
};
const openapi = {
  openapi: '3.1.0',
  info: { title: 'Tabs', version: '1' },
  paths: {
    '/tabs': {
      post: { security, responses },
      get: {
        security,
        parameters: [inQuery('limit', { type: 'integer' }), inQuery('cursor', { type: 'string' })],
        responses,
      },
      delete: {
        security,
        parameters: [{ ...inQuery('ids', { type: 'array', items: owned }), required: true }],
        responses,
      },
    },
    '/tabs/search': { post: { security, requestBody: json({ text: { type: 'string' } }), responses } },
    '/exports/tabs': { get: { security, responses } },
    '/tabs/{id}': { get: { security, parameters: [inPath('id')], responses } },
    '/tabs/{id}/merge': {
      post: { security, parameters: [inPath('id')], requestBody: json({ tab_id: owned }), responses },
    },
    '/tabs/{id}/lines': { post: { security, parameters: [inPath('id')], responses } },
    '/tabs/{id}/lines/{line}': { get: { security, parameters: [inPath('id'), inPath('line')], responses } },
    '/splits': { post: { security, requestBody: json({ lines }), responses } },
  },
  components: { securitySchemes: { oauth: { type: 'oauth2', flows: {} } } },
};

/** Where the app forgets whose a tab is. */
const MISTAKES = {
  'DELETE /tabs': 'remove',
  'POST /tabs/{id}/merge': 'merge',
  'GET /tabs/{id}/lines/{line}': 'line',
  'POST /splits': 'split',
  'POST /tabs/search': 'search',
  'GET /exports/tabs': 'export',
  'GET /tabs shows': 'total',
  'GET /tabs': 'cursor',
} as const;
type Mistake = (typeof MISTAKES)[keyof typeof MISTAKES];

interface Tab {
  readonly id: string;
  readonly owner: string;
  readonly lines: string[];
}

function tabsApp(mistake?: Mistake): Express {
  let tabs: Tab[] = [];
  let made = 1000;
  const ownerOf = (req: Request): string => String(req.auth?.clientId);
  const find = (req: Request, id: unknown, where?: Mistake): Tab | undefined =>
    tabs.find((one) => one.id === id && (one.owner === ownerOf(req) || (where !== undefined && where === mistake)));
  const own = (req: Request, where?: Mistake): Tab[] => tabs.filter(({ id }) => find(req, id, where));
  const show = (res: Response, found: unknown, body: object = {}): void =>
    void (found === undefined ? res.sendStatus(404) : res.json(body));

  const app = express().use(express.json(), authenticate({ ...issuer.options, logger: false }), requireScope('tabs'));
  app.post('/tabs', (req, res) => {
    const tab = { id: `tab_${(made += 1)}`, owner: ownerOf(req), lines: [] };
    tabs.push(tab);
    res.status(201).json({ id: tab.id });
  });
  app.get('/tabs', (req, res) => {
    const { cursor, limit } = req.query;
    const all = cursor !== undefined && mistake === 'cursor' ? tabs : own(req);
    const from = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
    const page = all.slice(from, from + (Number(limit) || 100)).map(({ id }) => ({ id }));
    const total = mistake === 'total' ? tabs.length : all.length;
    res.json({ data: page, total, next_cursor: page.at(-1)?.id });
  });
  app.delete('/tabs', (req, res) => {
    const ids = [req.query['ids'] ?? []].flat().flatMap((one) => (one as string).split(','));
    const removed = ids.flatMap((id) => find(req, id, 'remove') ?? []);
    tabs = tabs.filter((one) => !removed.includes(one));
    res.sendStatus(204);
  });
  app.post('/tabs/search', (req, res) => void res.json({ found: own(req, 'search').map(({ id }) => id) }));
  app.get('/exports/tabs', (req, res) => {
    res.type('text/csv').send(['id', ...own(req, 'export').map(({ id }) => id)].join('\n'));
  });
  app.get('/tabs/:id', (req, res) => show(res, find(req, req.params.id), { id: req.params.id }));
  app.post('/tabs/:id/merge', (req, res) => {
    show(res, find(req, req.params.id) && find(req, (req.body as { tab_id: string }).tab_id, 'merge'));
  });
  app.post('/tabs/:id/lines', (req, res) => {
    const tab = find(req, req.params.id);
    const id = `line_${(made += 1)}`;
    tab?.lines.push(id);
    show(res, tab, { id });
  });
  app.get('/tabs/:id/lines/:line', (req, res) => {
    const tab = find(req, req.params.id);
    const isThere = tabs.some((one) => (one === tab || mistake === 'line') && one.lines.includes(req.params.line));
    show(res, tab && isThere ? tab : undefined, { line: req.params.line });
  });
  app.post('/splits', (req, res) => {
    const [first] = (req.body as { lines: { tab_id: string }[] }).lines;
    show(res, find(req, first?.tab_id, 'split'));
  });
  return app;
}

const options = { openapi, issuer, classes: ['object'], generations: false } as const;

describe('what belongs to a client', () => {
  it('is tested at every place that the document marks, and an API that is right is green', async () => {
    const cases = contractCases({ ...options, app: tabsApp() });
    expect(await failuresOf(cases)).toEqual([]);
    expect(cases.report()).toMatchObject({ notTested: [], ownersNotTested: [] });
  });

  it.each(Object.entries(MISTAKES))('is found open at %s, in this process and over HTTP', async (place, mistake) => {
    const app = tabsApp(mistake);
    const server = await listen(app);
    for (const at of [{ app }, { url: server.url }]) {
      const [found = '', ...others] = await failuresOf(contractCases({ ...options, ...at }));
      expect(found).toContain(`${place.replace(' shows', '')} shows and changes only what belongs to the client\n`);
      expect(others).toEqual([]);
    }
    await server.close();
  });

  it('is named where nothing makes it', async () => {
    const { '/tabs/{id}': single, '/splits': splits } = openapi.paths;
    const alone = { ...openapi, paths: { '/tabs/{id}': single, '/splits': splits } };
    const cases = contractCases({ ...options, openapi: alone, app: tabsApp() });
    await failuresOf(cases);
    expect(cases.report().ownersNotTested).toEqual([
      'GET /tabs/{id}: no POST makes an object for id',
      'POST /splits: no POST makes an object for tab_id',
    ]);
  });
});
