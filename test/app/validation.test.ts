import request from 'supertest';
import type { Response, Test } from 'supertest';
import { token } from '../support/issuer';
import { commerceApp, exampleOf, routeOf, routes } from './commerce/commerce-app';
import { loadContract } from '../../src/app/contract';
import { compiler } from '../../src/app/validation';
import { largestBodies } from '../support/largest-bodies';

const order = exampleOf(routeOf('createOrder'))!;
const { app } = commerceApp();
const writer = `Bearer ${token({ claims: { scope: 'orders:read orders:write inventory:write' } })}`;
const reader = `Bearer ${token({ claims: { scope: 'orders:read' } })}`;

function send(method: 'get' | 'post' | 'patch' | 'put' | 'options' | 'head', path: string): Test {
  return request(app)[method](path).set('Authorization', writer);
}

function expectProblem(response: Response, status: number, code: string, members: object = {}): void {
  expect(response.status).toBe(status);
  expect(response.type).toBe('application/problem+json');
  expect(response.headers['cache-control']).toBe('no-store');
  expect(response.body).toMatchObject({ status, code, type: 'about:blank', ...members });
}

/** One place of the request does not match the contract. */
function expectError(response: Response, path: string, message: string): void {
  expectProblem(response, 400, 'invalid_request', { errors: [{ path, message }] });
}

describe('a body', () => {
  it.each([
    ['a missing member', { channel: undefined }, '/body/channel', 'is required'],
    ['an unknown member', { chanel: 'pos' }, '/body/chanel', 'is not known here'],
    ['a member for the server to set', { status: 'completed' }, '/body/status', 'is not known here'],
    ['a wrong type', { location_id: 7 }, '/body/location_id', 'must be string'],
    ['text for a number', { lines: [line({ quantity: '2' })] }, '/body/lines/0/quantity', 'must be integer'],
    ['a value that is too small', { lines: [line({ quantity: 0 })] }, '/body/lines/0/quantity', 'must be >= 1'],
    ['no word of the list', { channel: 'fax' }, '/body/channel', 'must be one of pos, kiosk, web, delivery'],
    ['an empty list', { lines: [] }, '/body/lines', 'must NOT have fewer than 1 items'],
    ['a member name with a slash', { 'a/b~c': 1 }, '/body/a~1b~0c', 'is not known here'],
  ])('with %s is 400, and errors says where', async (_what, change, path, message) => {
    const response = await send('post', '/v1/orders').send({ ...order, ...change });
    expectProblem(response, 400, 'invalid_request', {
      title: 'Bad Request',
      detail: 'The request does not match the contract of this API: see errors.',
    });
    expect(response.body.errors).toEqual([{ path, message }]);
  });

  it('that is wrong in several places gets the first, after that of the query', async () => {
    const response = await send('post', '/v1/orders?dry_run=1&limt=5').send({ location_id: '', lines: order });
    const paths = response.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(['/query/dry_run', '/body/channel']);
  });

  it.each([['[]'], ['"text"'], ['7'], ['null'], ['true']])('%s is not an object', async (body) => {
    const response = await send('post', '/v1/orders').type('json').send(body);
    expectError(response, '/body', 'must be object');
  });

  it('with __proto__ pollutes nothing', async () => {
    const response = await send('patch', '/v1/orders/ord_0001').type('json').send('{"__proto__":{"polluted":true}}');
    expectError(response, '/body/__proto__', 'is not known here');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('that is broken JSON is 400, and the response contains nothing of it', async () => {
    const response = await send('post', '/v1/orders').type('json').send('{"channel": "hunter2');
    expectProblem(response, 400, 'invalid_request', {
      detail: 'The body is not valid JSON: look for a missing quote, comma or bracket.',
      errors: [{ path: '/body', message: 'must be valid JSON' }],
    });
    expect(response.text).not.toMatch(/hunter2|at JSON|node_modules/);
  });

  it('that is missing is 400 where one is required', async () => {
    const response = await send('post', '/v1/orders');
    expectError(response, '/body', 'is required');
  });

  it('with nothing to change is 400', async () => {
    const response = await send('patch', '/v1/orders/ord_0001').send({});
    expectError(response, '/body', 'must NOT have fewer than 1 properties');
  });

  it.each(['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'of type %s is 415',
    async (type) => {
      const response = await send('post', '/v1/orders').set('Content-Type', type).send('a=1');
      expectProblem(response, 415, 'unsupported_media_type', {
        detail: 'Send the body as application/json, and say so in Content-Type.',
      });
      expect(response.headers['accept']).toBe('application/json');
    },
  );

  it('in an unknown encoding or charset is 415', async () => {
    const encoded = await send('post', '/v1/orders').type('json').set('Content-Encoding', 'zstd2').send('{}');
    expectProblem(encoded, 415, 'unsupported_media_type');
    const charset = await send('post', '/v1/orders')
      .set('Content-Type', 'application/json; charset=klingon')
      .send('{}');
    expectProblem(charset, 415, 'unsupported_media_type');
  });

  it('of 1 MB is 413', async () => {
    const response = await send('post', '/v1/orders').send({ ...order, note: 'x'.repeat(1_000_000) });
    expectProblem(response, 413, 'payload_too_large', {
      detail: 'The body is larger than the 100 kB that are accepted here.',
    });
  });

  it('is ignored where the contract has none', async () => {
    const caller = commerceApp().as('checks:write');
    expect((await caller.post('/v1/checks/chk_0001/close', { why: 'not' })).status).toBe(200);
  });

  it('with a change of 0 is refused', async () => {
    const body = { inventory_id: 'inv_0001', change: 0, reason: 'sold' };
    const response = await send('post', '/v1/inventory/adjustments').send(body);
    expectError(response, '/body/change', 'must not have this value');
  });
});

describe('a query', () => {
  it.each([
    ['limit=0', '/query/limit', 'must be >= 1'],
    ['limit=101', '/query/limit', 'must be <= 100'],
    ['limit=ten', '/query/limit', 'must be integer'],
    ['limit=1.5', '/query/limit', 'must be integer'],
    ['limit=1&limit=2', '/query/limit', 'must be integer'],
    ['limt=5', '/query/limt', 'is not known here'],
    ['cursor=a!b', '/query/cursor', 'must match pattern "^[0-9a-z]{1,9}$"'],
    ['cursor=ord_0001', '/query/cursor', 'must match pattern "^[0-9a-z]{1,9}$"'],
    ['cursor=1234567890', '/query/cursor', 'must match pattern "^[0-9a-z]{1,9}$"'],
    ['cursor=', '/query/cursor', 'must match pattern "^[0-9a-z]{1,9}$"'],
    ['__proto__=1', '/query/__proto__', 'is not known here'],
  ])('%s is 400', async (query, path, message) => {
    const response = await send('get', `/v1/orders?${query}`);
    expectError(response, path, message);
  });

  it.each(['limit=1', 'limit=100'])('%s is fine', async (query) => {
    expect((await send('get', `/v1/orders?${query}`)).status).toBe(200);
  });
});

describe('a path', () => {
  it.each(['a%20b', 'x'.repeat(65), '..%2f..'])('/v1/orders/%s is 400', async (id) => {
    const message = 'must match pattern "^[A-Za-z0-9_-]{1,64}$"';
    expectError(await send('get', `/v1/orders/${id}`), '/path/id', message);
  });

  it('%ff, which is not UTF-8, is 400', async () => {
    expectProblem(await send('get', '/v1/orders/%ff'), 400, 'invalid_request');
  });

  it.each([
    ...['/v1', '/v1/', '/v1/nothing', '/v1/order%73', '/v1//orders'],
    ...['/v1/orders//', '/v1/orders/ord_0001/eat', '/v1/orders//cancel'],
  ])('%s is 404', async (path) => {
    expectProblem(await send('get', path), 404, 'not_found');
  });

  it.each([
    ['put', '/v1/orders/ord_0001', 'GET, HEAD, PATCH'],
    ['options', '/v1/orders', 'GET, HEAD, POST'],
    ['get', '/v1/inventory/adjustments', 'POST'],
    ['patch', '/v1/payments/pay_0001', 'GET, HEAD'],
  ] as const)('called by %s %s is 405 with Allow', async (method, path, allow) => {
    const response = await send(method, path);
    expectProblem(response, 405, 'method_not_allowed', { detail: `This resource supports ${allow}.` });
    expect(response.headers['allow']).toBe(allow);
  });

  it('responds to HEAD as to GET, without a body', async () => {
    const response = await send('head', '/v1/orders');
    expect(response.status).toBe(200);
    expect(response.text).toBeUndefined();
  });

  it('is validated in every case and with every trailing slash that Express serves', async () => {
    for (const path of ['/V1/Orders', '/v1/orders/']) {
      expectProblem(await send('post', path).send({ wrong: true }), 400, 'invalid_request');
    }
  });
});

describe('a caller without the scope', () => {
  it.each([
    ['a body that does not fit', (test: Test) => test.send({ wrong: true })],
    ['broken JSON', (test: Test) => test.type('json').send('{')],
    ['1 MB', (test: Test) => test.send({ note: 'x'.repeat(1_000_000) })],
    ['another media type', (test: Test) => test.type('text/plain').send('x')],
    ['no body', (test: Test) => test],
  ])('gets 403 before the body is validated: %s', async (_what, fill) => {
    const response = await fill(request(app).post('/v1/orders').set('Authorization', reader));
    expectProblem(response, 403, 'insufficient_scope', { required_scopes: ['orders:write'] });
  });

  it.each([
    ['post', '/v1/orders'],
    ['put', '/v1/orders'],
    ['get', '/v1/nothing'],
    ['options', '/v1/orders'],
  ] as const)('gets 401 first on %s %s without a token', async (method, path) => {
    const response = await request(app)[method](path).send({ wrong: true });
    expectProblem(response, 401, 'missing_token');
    expect(response.headers['www-authenticate']).toBe('Bearer realm="api"');
  });
});

function line(change: object): object {
  return { item_id: 'itm_0001', quantity: 1, unit_price: { amount: 100, currency: 'GBP' }, ...change };
}

const contract = loadContract();
const compile = compiler(contract);
const withBody = routes.filter(({ operation }) => operation.requestBody);
const RIGHT = { item_id: 'itm_0001', quantity: 1, unit_price: { amount: 1, currency: 'GBP' } };

it.each(routes.map(({ method, path }) => [method, path] as const))(
  'compiles %s %s of openapi.yaml, which is left to its first request',
  (method, path) => {
    const { query } = compile(method, path);
    expect(query({ unknown: '1' })).toBe(false);
    expect(query({})).toBe(true);
  },
);

describe('the work of validating a body with many errors', () => {
  it.each(withBody.map((at) => [`${at.method} ${at.path}`, at] as const))(
    'of %s: each item is read once at most, and errors are bounded',
    (_name, { method, path, operation }) => {
      const { example } = operation.requestBody!.content['application/json'] as { example?: object };
      const { validate } = compile(method, path).body!;
      const unbounded: string[] = [];
      for (const { name, text } of largestBodies(example!, 2_000)) {
        if (name.includes('in each other')) continue;
        const body = JSON.parse(text) as object;
        const counted = countReads(body);
        validate(body);
        const isBounded = counted.reads() <= counted.items && (validate.errors ?? []).length <= 1;
        if (!isBounded) unbounded.push(name);
      }
      expect(unbounded).toEqual([]);
    },
  );

  it.each([0, 50])('stops at the first error, after %i right items', (before) => {
    const { validate } = compile('POST', '/v1/orders').body!;
    const items = [...Array<object>(before).fill(RIGHT), ...Array<object>(100 - before).fill({})];
    const order = { location_id: 'loc_0001', channel: 'pos', lines: items };
    const lines = countReads(order);
    expect(validate(order)).toBe(false);
    expect(lines.reads()).toBeGreaterThan(before);
    expect(lines.reads()).toBeLessThanOrEqual(before + 1);
  });

  it('does not depend on keywords that cost more than the body is long', () => {
    expect(JSON.stringify(contract)).not.toMatch(/"(uniqueItems|patternProperties|propertyNames|contains)":/);
  });
});

/** Counts the items of the long arrays in a value, and how often one of them is read. */
function countReads(value: object): { readonly items: number; reads(): number } {
  let [items, reads] = [0, 0];
  const get = (target: unknown[], name: string | symbol): unknown => {
    if (typeof name === 'string' && name !== 'length') reads++;
    return Reflect.get(target, name);
  };
  const walk = (within: object): void => {
    for (const [name, member] of Object.entries(within) as [string, unknown][]) {
      if (typeof member !== 'object' || member === null) continue;
      if (!Array.isArray(member) || member.length < 100) {
        walk(member);
        continue;
      }
      items += member.length;
      Reflect.set(within, name, new Proxy<unknown[]>(member, { get }));
    }
  };
  walk(value);
  return { items, reads: () => reads };
}
