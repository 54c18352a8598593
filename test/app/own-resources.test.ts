import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Router } from 'express';
import request from 'supertest';
import { ConfigurationError, requireScope } from '../../src/gate';
import { createApp, createLog } from '../../src/app';
import type { App, AppOptions } from '../../src/app';
import { loadContract } from '../../src/testing/openapi/document';
import type { ContractDocument } from '../../src/testing/openapi/document';
import { readSettings } from '../../src/gate/env/settings';
import { contractCases, createTestIssuer, expectProblem } from '../../src/testing';
import { newDataDir } from '../cli/data-dir';

const issuer = createTestIssuer();
const opened: App[] = [];
afterAll(() => Promise.all(opened.map((app) => app.close())));

function appWith(options: Partial<AppOptions>): App {
  const app = createApp({
    settings: readSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' }),
    gate: issuer.options,
    logger: createLog({ level: 'silent' }),
    ...options,
  });
  opened.push(app);
  return app;
}

const PROBLEM = { content: { 'application/problem+json': { schema: { required: ['code'] } } } };
const ERRORS = { '4XX': { description: 'Refused', ...PROBLEM }, '5XX': { description: 'Failed', ...PROBLEM } };
const GIFT_CARD = { type: 'object', required: ['id', 'balance'] };
const NEW_GIFT_CARD = {
  ...{ type: 'object', additionalProperties: false, required: ['balance'] },
  properties: { balance: { type: 'integer', minimum: 1 } },
};

/** What the API of a shop adds: gift cards. */
const OPERATIONS = {
  '/v1/gift-cards': {
    get: {
      security: [{ client: ['gift-cards:read'] }],
      responses: {
        '200': { description: 'All', content: { 'application/json': { schema: { type: 'array' } } } },
        ...ERRORS,
      },
    },
    post: {
      security: [{ client: ['gift-cards:write'] }],
      requestBody: { required: true, content: { 'application/json': { schema: NEW_GIFT_CARD } } },
      responses: {
        '201': { description: 'It', content: { 'application/json': { schema: GIFT_CARD } } },
        ...ERRORS,
      },
    },
  },
};
const SCOPES = { 'gift-cards:read': 'See them', 'gift-cards:write': 'Sell them' };

/** A document with gift cards, and with the tables of the package. */
function shop(paths: object = OPERATIONS, scopes: object = SCOPES): object {
  const { components, ...contract } = JSON.parse(
    JSON.stringify(loadContract()).replaceAll('"oauth2":', '"client":'),
  ) as ContractDocument;
  const tables = Object.entries(contract.paths).filter(([path]) => path.startsWith('/v1/tables'));
  const ofTables = { 'tables:read': 'See tables', 'tables:write': 'Change tables' };
  const client = {
    type: 'oauth2',
    flows: { clientCredentials: { tokenUrl: '/', scopes: { ...ofTables, ...scopes } } },
  };
  return {
    ...contract,
    info: { title: 'Shop', version: '1' },
    paths: { ...Object.fromEntries(tables), ...paths },
    components: { ...components, securitySchemes: { client } },
  };
}

function giftCardRouter(): Router {
  const router = Router();
  router.get('/', requireScope('gift-cards:read'), (_req, res) => void res.json([{ id: 'gif_1', balance: 5 }]));
  router.post(
    '/',
    requireScope('gift-cards:write'),
    (req, res) => void res.status(201).json({ id: 'gif_2', ...req.body }),
  );
  return router;
}

function problemsOf(options: Partial<AppOptions>): readonly string[] {
  try {
    appWith(options);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe('an app with a resource of its own', () => {
  const document = shop();
  const { handler } = appWith({ document, routers: { 'gift-cards': giftCardRouter() } });
  const call = (method: 'get' | 'post', path: string, scope: string) =>
    request(handler)[method](path).auth(issuer.token({ scope }), { type: 'bearer' });

  const requests = ({ path }: { readonly path: string }) => (path.includes('{id}') ? { path: { id: 'tbl_0001' } } : {});
  const cases = contractCases({ app: handler, openapi: document, issuer, requests });
  it.each(cases.filter(({ name }) => name.includes('gift-cards') || name.startsWith('The app')))(
    'passes the contract cases of the document: $name',
    ({ run }) => run(),
  );

  it('validates bodies by the document', async () => {
    const response = await call('post', '/v1/gift-cards', 'gift-cards:write').send({ balance: 0 });
    expectProblem(response, { status: 400, code: 'invalid_request' });
    expect(response.body.errors).toEqual([{ path: '/body/balance', message: 'must be >= 1' }]);
  });

  it('has placeholders for the resources of the document only', async () => {
    expect((await call('get', '/v1/tables', 'tables:read')).headers['x-placeholder']).toBe('true');
    expectProblem(await call('get', '/v1/orders', 'orders:read'), { status: 404, code: 'not_found' });
  });

  it('publishes the document', async () => {
    expect((await request(handler).get('/openapi.json')).body).toEqual(document);
    const yaml = await request(handler).get('/openapi.yaml').buffer();
    expect(yaml.get('Content-Type')).toBe('application/yaml; charset=utf-8');
    expect(JSON.parse(yaml.text)).toEqual(document);
  });

  it('reads the document from a file, and publishes that as it is', async () => {
    const file = join(newDataDir(), 'shop.yaml');
    const text = `# Ours\n${JSON.stringify(document)}\n`;
    writeFileSync(file, text);
    const { handler } = appWith({ document: file, routers: { 'gift-cards': giftCardRouter() } });
    expect((await request(handler).get('/openapi.yaml').buffer()).text).toBe(text);
  });
});

it('a router of the name of a placeholder replaces it, as one in replace does', async () => {
  const orders = Router();
  orders.get('/', requireScope('orders:read'), (_req, res) => void res.json({ mine: true }));
  const paths = {
    '/v1/orders': { get: { ...OPERATIONS['/v1/gift-cards'].get, security: [{ client: ['orders:read'] }] } },
  };
  const document = shop(paths, { 'orders:read': 'See orders' });
  for (const { handler } of [appWith({ document, routers: { orders } }), appWith({ document, replace: { orders } })]) {
    const response = await request(handler)
      .get('/v1/orders')
      .auth(issuer.token({ scope: 'orders:read' }), { type: 'bearer' });
    expect([response.body, response.get('X-Placeholder')]).toEqual([{ mine: true }, undefined]);
  }
});

describe('an app does not start', () => {
  it('when its router lacks an operation of the document', () => {
    expect(problemsOf({ document: shop(), routers: { 'gift-cards': Router() } })).toEqual([
      'GET /v1/gift-cards: the document has it, the app does not; add the route, or remove the operation',
      'POST /v1/gift-cards: the document has it, the app does not; add the route, or remove the operation',
      'scope gift-cards:read: declared in components.securitySchemes of the document, but the app does not require it; require it, or remove it',
      'scope gift-cards:write: declared in components.securitySchemes of the document, but the app does not require it; require it, or remove it',
    ]);
  });

  it('when its document, a file, lacks an operation of the router', () => {
    const file = join(newDataDir(), 'shop.yaml');
    writeFileSync(file, JSON.stringify(shop({}, {})));
    expect(problemsOf({ document: file, routers: { 'gift-cards': giftCardRouter() } })).toEqual([
      'GET /v1/gift-cards: the app has it, shop.yaml does not; document the operation, or remove the route',
      'POST /v1/gift-cards: the app has it, shop.yaml does not; document the operation, or remove the route',
      'scope gift-cards:read: missing in components.securitySchemes of shop.yaml, so that no client may have it; declare it there with a description',
      'scope gift-cards:write: missing in components.securitySchemes of shop.yaml, so that no client may have it; declare it there with a description',
    ]);
  });

  it('when a guard requires something else than the document says', () => {
    const open = giftCardRouter();
    open.put('/', (_req, res) => void res.json([]));
    const put = { ...OPERATIONS['/v1/gift-cards'].get };
    const paths = { '/v1/gift-cards': { ...OPERATIONS['/v1/gift-cards'], put } };
    expect(problemsOf({ document: shop(paths), routers: { 'gift-cards': open } })).toEqual([
      'PUT /v1/gift-cards: in the app every valid token reaches it, the document says gift-cards:read; put requireScope() before its handler',
    ]);
  });

  it('when the document has a path that is not below /v1', () => {
    const document = shop({ ...OPERATIONS, '/health': { get: { security: [], responses: {} } } });
    expect(problemsOf({ document, routers: { 'gift-cards': giftCardRouter() } })).toEqual([
      'GET /health: the document has it, the app does not; add the route, or remove the operation',
    ]);
  });

  it('when a schema of the document cannot be compiled', () => {
    const requestBody = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Lost' } } } };
    const parameters = [{ name: 'limit', in: 'query', schema: { type: 'number?' } }];
    const { get, post } = OPERATIONS['/v1/gift-cards'];
    const paths = { '/v1/gift-cards': { get: { ...get, parameters }, post: { ...post, requestBody } } };
    expect(problemsOf({ document: shop(paths), routers: { 'gift-cards': giftCardRouter() } })).toEqual([
      expect.stringMatching(/^GET \/v1\/gift-cards: the document has a schema that cannot be used: .*number\?/),
      expect.stringMatching(/^POST \/v1\/gift-cards: the document has a schema that cannot be used: .*Lost/),
    ]);
  });

  it.each([
    [
      { openapi: '3.0.3', paths: {} },
      'the document: expected an OpenAPI 3.1 document with "openapi: 3.1.x" and "paths"',
    ],
    ['no/such.yaml', expect.stringMatching(/^no\/such\.yaml: cannot be read: ENOENT/)],
  ])('with the document %j', (document, problem) => {
    expect(problemsOf({ document })).toEqual([problem]);
  });

  it.each([
    [{ document: 3 }, 'option "document" must be the path of an OpenAPI document or its parsed content, got 3'],
    [{ routers: [] }, 'option "routers" must be an object of Express routers, got an empty array'],
    [
      { routers: { '/gift-cards': Router() } },
      'option "routers" has the name "/gift-cards"; expected one segment of a path, such as "gift-cards" for /v1/gift-cards',
    ],
    [{ routers: { cards: () => {} } }, 'option "routers.cards" must be an Express Router, got a function'],
    [{ replace: { orders: {} } }, 'option "replace.orders" must be an Express Router, got an object'],
    [
      { replace: { order: Router() } },
      'option "replace" names no resource: "order"; did you mean "orders"? A resource of your own goes into "routers"',
    ],
  ])('with the options %j', (options, message) => {
    expect(() => appWith(options as Partial<AppOptions>)).toThrow(new TypeError(`createApp(): ${message}`));
  });
});
