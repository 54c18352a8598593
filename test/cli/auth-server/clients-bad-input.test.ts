import request from 'supertest';
import type { Response } from 'supertest';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterAll(closeAll);

describe('bad input', () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
    await registerClient(server);
  });

  const NEW = { client_id: 'new', description: 'x', scope: 'orders:read' };

  async function expectNothingStored(): Promise<void> {
    const { body } = await server.get('/clients');
    const unchanged = { client_id: 'pos-17', description: 'Till 17', disabled: false, secrets: [expect.anything()] };
    expect(body.clients).toEqual([expect.objectContaining(unchanged)]);
  }

  function expectProblem({ status, headers, body }: Response, expected: number, code: string): void {
    expect([status, body.code]).toEqual([expected, code]);
    expect(headers['content-type']).toMatch(/^application\/problem\+json(; charset=utf-8)?$/);
    expect(body.detail).not.toContain('JSON at position');
  }

  const ID =
    'client_id must be a string of 1 to 128 printable ASCII characters, without blanks at its ends, and not ".", ".." or "*"; ';
  const SCOPE =
    'scope must be a string of one or more scopes, separated by single spaces, such as "orders:read orders:write"; ';

  const UNKNOWN = 'Unknown scope';
  const MEMBERS = 'client_id, description, scope';
  const LONG = 'x'.repeat(1_001);
  const CONTROL = 'description must not hold control characters, such as line breaks and tabs; leave them out.';
  const SCOPES = 'known are orders:read, orders:write, items:read';

  describe('a registration that cannot be: 400 that says what to do', () => {
    it.each<[string, unknown, string]>([
      ['no client_id', { ...NEW, client_id: undefined }, `${ID}got undefined.`],
      ['a number for a client_id', { ...NEW, client_id: 17 }, `${ID}got 17.`],
      ['an empty client_id', { ...NEW, client_id: '' }, `${ID}got "".`],
      ['a blank in front', { ...NEW, client_id: ' a' }, `${ID}got " a".`],
      ['a dot segment', { ...NEW, client_id: '..' }, `${ID}got "..".`],
      [
        'a client_id that is the name of a caller without one',
        { ...NEW, client_id: 'sub:pos-17' },
        'client_id must not begin with "sub:", as the names of callers without a client id do. Choose another id, such as "pos-terminal".',
      ],
      ['a line break in client_id', { ...NEW, client_id: 'a\nb' }, `${ID}got "a\\nb".`],
      ['no ASCII in client_id', { ...NEW, client_id: 'käse' }, `${ID}got "käse".`],
      ['a long client_id', { ...NEW, client_id: 'x'.repeat(129) }, `${ID}got "${'x'.repeat(57)}...".`],
      ['a Description that is not a string', { ...NEW, description: 7 }, 'description must be a string; got 7.'],
      ['null for a Description', { ...NEW, description: null }, 'description must be a string; got null.'],
      [
        'a long one',
        { ...NEW, description: LONG },
        'description must have at most 1000 characters; got 1001. Shorten it.',
      ],
      ['a line break in the Description', { ...NEW, description: 'a\nb' }, CONTROL],
      ['no scope', { ...NEW, scope: undefined }, `${SCOPE}got undefined.`],
      ['an empty scope', { ...NEW, scope: '' }, `${SCOPE}got "".`],
      ['an array of scopes', { ...NEW, scope: ['orders:read'] }, `${SCOPE}got an array of 1.`],
      ['two blanks in scope', { ...NEW, scope: 'orders:read  items:read' }, `${SCOPE}got "orders:read  items:read".`],
      [
        'an unknown scope',
        { ...NEW, scope: 'orders:read order:read' },
        `${UNKNOWN} "order:read"; did you mean "orders:read"?`,
      ],
      ['an unknown member', { ...NEW, desciption: 'x' }, 'Unknown member "desciption"; did you mean "description"?'],
      ['__proto__', JSON.parse('{"__proto__":{}}'), `Unknown member "__proto__"; known are ${MEMBERS}`],
      ['an array', [NEW], `The body must be a JSON object with ${MEMBERS}; got an array of 1.`],
    ])('%s', async (_name, body, detail) => {
      const response = await server.post('/clients', body as object);
      expect(response.status).toBe(400);
      expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      const advice = detail.startsWith(ID) ? ' Choose another id, such as "pos-terminal".' : '';
      const problem = { type: 'about:blank', title: 'Bad Request', status: 400, code: 'invalid_request' };
      expect(response.body).toEqual({ ...problem, detail: detail + advice });
      await expectNothingStored();
    });
  });

  describe('a body that cannot be read', () => {
    const JSON_TYPE = 'application/json';
    const body = JSON.stringify(NEW);
    it.each([
      ['broken JSON', JSON_TYPE, '{"client_id":', 400, 'invalid_request'],
      ['no JSON type', 'text/plain', body, 415, 'unsupported_media_type'],
      ['a form', 'application/x-www-form-urlencoded', 'client_id=x', 415, 'unsupported_media_type'],
      ['another charset', 'application/json; charset=iso-8859-1', body, 415, 'unsupported_media_type'],
      ['1 MB', JSON_TYPE, JSON.stringify({ ...NEW, description: 'x'.repeat(1e6) }), 413, 'payload_too_large'],
      ['null', JSON_TYPE, 'null', 400, 'invalid_request'],
      ['a string', JSON_TYPE, '"x"', 400, 'invalid_request'],
    ])('%s', async (_name, type, body, status, code) => {
      for (const call of [request(server.url).post('/clients'), request(server.url).patch('/clients/pos-17')]) {
        expectProblem(await call.set('content-type', type).send(body), status, code);
      }
      await expectNothingStored();
    });
  });

  it('an empty body counts as an empty object: a registration lacks its id, a PATCH changes nothing', async () => {
    const api = request(server.url);
    const registration = await api.post('/clients').set('content-type', 'application/json').send('');
    const detail = `${ID}got undefined. Choose another id, such as "pos-terminal".`;
    expect([registration.status, registration.body.detail]).toEqual([400, detail]);
    const patched = await api.patch('/clients/pos-17').set('content-type', 'application/json').send('');
    expect([patched.status, patched.body.description]).toEqual([200, 'Till 17']);
    expect(patched.body).not.toHaveProperty('token');
    await expectNothingStored();
  });

  describe('a change that cannot be: 400', () => {
    const known = 'known are description, scope, disabled';
    const patch = (body: object) => server.patch('/clients/pos-17', body);
    const rotate = (body: object) => server.post('/clients/pos-17/secrets', body);
    it.each([
      [{ client_id: 'other' }, `Unknown member "client_id"; ${known}`, patch],
      [{ generation: 1 }, `Unknown member "generation"; ${known}`, patch],
      [{ disabled: 'yes' }, 'disabled must be true or false; got "yes".', patch],
      [{ description: ['x'] }, 'description must be a string; got an array of 1.', patch],
      [{ description: 'new', scope: 'nope:nope' }, `${UNKNOWN} "nope:nope"; ${SCOPES}`, patch],
      [{ keep_tokens: 1 }, 'keep_tokens must be true or false; got 1.', rotate],
      [{ keep_token: true }, 'Unknown member "keep_token"; did you mean "keep_tokens"?', rotate],
    ])('%j', async (body, detail, change) => {
      const response = await change(body);
      expect([response.status, response.body.detail]).toEqual([400, detail]);
      await expectNothingStored();
    });
  });

  describe('a URL that does not exist', () => {
    it.each([
      ['bad percent encoding', 'get', '/clients/%zz', 400, 'invalid_request'],
      ['an unknown client', 'get', '/clients/nobody', 404, 'not_found'],
      ['an unknown client, PATCH', 'patch', '/clients/nobody', 404, 'not_found'],
      ['an unknown client, secrets', 'post', '/clients/nobody/secrets', 404, 'not_found'],
      ['an unknown client, revoke', 'post', '/clients/nobody/revoke', 404, 'not_found'],
      ['an unknown path', 'get', '/nowhere', 404, 'not_found'],
      ['an unknown path below a client', 'get', '/clients/pos-17/nowhere', 404, 'not_found'],
    ] as const)('%s', async (_name, method, path, status, code) => {
      const call = request(server.url)[method](path);
      expectProblem(await (method === 'get' ? call : call.send({})), status, code);
    });

    it.each([
      ['put', '/clients', 'GET, HEAD, POST'],
      ['put', '/clients/pos-17', 'GET, HEAD, PATCH, DELETE'],
      ['get', '/clients/pos-17/secrets', 'POST'],
      ['get', '/clients/pos-17/revoke', 'POST'],
      ['post', '/generations', 'GET, HEAD'],
      ['post', '/.well-known/openid-configuration', 'GET, HEAD'],
    ] as const)('%s %s: 405 with Allow', async (method, path, allow) => {
      const response = await request(server.url)[method](path);
      expectProblem(response, 405, 'method_not_allowed');
      expect(response.headers['allow']).toBe(allow);
    });
  });
});
