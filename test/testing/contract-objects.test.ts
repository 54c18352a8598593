import express from 'express';
import type { Express, Request } from 'express';
import { authenticate, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import { failuresOf } from './failures-of';

const issuer = createTestIssuer();

interface Tab {
  readonly id: string;
  readonly owner: string;
  total: number;
}

/** Which tabs a request may use: all of its ids, by what is open. `undefined` refuses. */
type Use = (
  ids: readonly string[],
  own: (id: string) => Tab | undefined,
  any: (id: string) => Tab | undefined,
) => Tab[] | undefined;

/** Where an app makes a mistake. */
type Where = 'body' | 'list' | 'query';

const allOwn: Use = (ids, own) => {
  const found = ids.flatMap((id) => own(id) ?? []);
  return found.length === ids.length ? found : undefined;
};

/** Tabs that belong to the client that has opened them: paid by an id, merged by a list of ids, filtered by ids. */
function tabsApp(mistakes: Partial<Readonly<Record<Where, Use>>> = {}): Express {
  const tabs = new Map<string, Tab>();
  const clientOf = (req: Request): string => String(req.auth?.clientId);
  function use(req: Request, where: Where, ids: readonly string[]): Tab[] | undefined {
    const any = (id: string): Tab | undefined => tabs.get(id);
    const own = (id: string): Tab | undefined => (any(id)?.owner === clientOf(req) ? any(id) : undefined);
    return (mistakes[where] ?? allOwn)(ids, own, any);
  }
  const app = express();
  const tabsScope = requireScope('tabs');
  app.use(express.json(), authenticate({ ...issuer.options, logger: false }));
  app.post('/tabs', tabsScope, (req, res) => {
    const tab = { id: `tab_${tabs.size + 1000}`, owner: clientOf(req), total: 10 };
    tabs.set(tab.id, tab);
    res.status(201).json(tab);
  });
  app.get('/tabs/:id', tabsScope, (req, res) => {
    const tab = tabs.get(String(req.params['id']));
    if (tab?.owner === clientOf(req)) res.json(tab);
    else res.sendStatus(404);
  });
  app.post('/payments', tabsScope, (req, res) => {
    const found = use(req, 'body', [(req.body as { tab_id: string }).tab_id]);
    for (const tab of found ?? []) tab.total = 0;
    if (found?.length) res.status(201).json({ paid: found.map(({ id }) => id) });
    else res.sendStatus(404);
  });
  app.post('/merges', tabsScope, (req, res) => {
    const found = use(req, 'list', (req.body as { tab_ids: string[] }).tab_ids);
    if (found?.length) res.json({ total: found.reduce((sum, { total }) => sum + total, 0), of: found.length });
    else res.sendStatus(404);
  });
  app.get('/receipts', tabsScope, (req, res) => {
    const ids = [req.query['tab_ids'] ?? []].flat() as string[];
    res.json((use(req, 'query', ids) ?? []).map(({ total, owner }) => ({ total, owner })));
  });
  return app;
}

const security = [{ oauth: ['tabs'] }];
const owned = { type: 'string', 'x-owner': 'client' };
const json = (schema: object): object => ({ content: { 'application/json': { schema } } });
const bodyOf = (name: string, schema: object): object => ({
  security,
  requestBody: json({ type: 'object', required: [name], properties: { [name]: schema } }),
  responses: { 200: {}, 201: {}, '4XX': {} },
});
const openapi = {
  openapi: '3.1.0',
  info: { title: 'Tabs', version: '1' },
  paths: {
    '/tabs': { post: { security, responses: { 201: {}, '4XX': {} } } },
    '/tabs/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, 'x-owner': 'client', schema: { type: 'string' } }],
      get: { security, responses: { 200: {}, '4XX': {} } },
    },
    '/payments': { post: bodyOf('tab_id', owned) },
    '/merges': { post: bodyOf('tab_ids', { type: 'array', items: owned, minItems: 1 }) },
    '/receipts': {
      get: {
        security,
        parameters: [{ name: 'tab_ids', in: 'query', schema: { type: 'array', items: owned } }],
        responses: { 200: {}, '4XX': {} },
      },
    },
  },
  components: {
    securitySchemes: {
      oauth: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/t', scopes: { tabs: '' } } } },
    },
  },
};

const MISTAKES: readonly (readonly [where: Where, what: string, use: Use])[] = [
  ['body', 'pays whatever exists', (ids, _own, any) => ids.flatMap((id) => any(id) ?? [])],
  [
    'body',
    'pays first, and refuses then',
    (ids, _own, any) => {
      for (const id of ids) Object.assign(any(id) ?? {}, { total: 0 });
      return undefined;
    },
  ],
  [
    'body',
    'compares ids only where they are numbers',
    (ids, own, any) => ids.flatMap((id) => (/^\d/.test(id) ? own(id) : any(id)) ?? []),
  ],
  [
    'list',
    'looks at the first id of a list',
    (ids, own, any) => (own(ids[0] ?? '') ? ids.flatMap((id) => any(id) ?? []) : undefined),
  ],
  [
    'list',
    'is content with one id of a list',
    (ids, own, any) => (ids.some(own) ? ids.flatMap((id) => any(id) ?? []) : undefined),
  ],
  [
    'list',
    'checks lists of several ids only',
    (ids, own, any) => (ids.length > 1 ? allOwn(ids, own, any) : ids.flatMap((id) => any(id) ?? [])),
  ],
  ['query', 'filters by any id', (ids, _own, any) => ids.flatMap((id) => any(id) ?? [])],
  [
    'query',
    'finds nothing where no id is its own',
    (ids, own, any) => (ids.some(own) ? ids.flatMap((id) => any(id) ?? []) : []),
  ],
  [
    'query',
    'counts what it may not show',
    (ids, own, any) => ids.flatMap((id) => own(id) ?? (any(id) && { id: '', owner: '', total: 1 }) ?? []),
  ],
];

const cases = (app: Express) => contractCases({ app, openapi, issuer, depth: 'quick', classes: ['object'] });

describe('ids of what another client has made', () => {
  it('are refused, or found nowhere, by an app that is right', async () => {
    const all = cases(tabsApp());
    expect(await failuresOf(all)).toEqual([]);
    expect(all.report().withoutCase).toEqual(['object: nothing in its request has x-owner: client: POST /tabs']);
  });

  it.each(MISTAKES)('in the %s are taken by an app that %s', async (where, _what, use) => {
    const place = { body: 'POST /payments', list: 'POST /merges', query: 'GET /receipts' }[where];
    const found = await failuresOf(cases(tabsApp({ [where]: use })));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^${place} shows and changes only what belongs to the client\n`));
  });
});
