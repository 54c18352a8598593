import request from 'supertest';
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
    expect(body.clients).toHaveLength(1);
    expect(body.clients[0]).toMatchObject({ client_id: 'pos-17', description: 'Till 17', disabled: false });
    expect(body.clients[0].secrets).toHaveLength(1);
  }

  const ID =
    'client_id must be a string of 1 to 128 printable ASCII characters, without blanks at its ends, and not ".", ".." or "*"; ';
  const SCOPE =
    'scope must be a string of one or more scopes, separated by single spaces, such as "orders:read orders:write"; ';

  describe('a registration that cannot be: 400 that says what to do', () => {
    it.each<[string, unknown, string]>([
      ['no client_id', { ...NEW, client_id: undefined }, `${ID}got undefined.`],
      ['a number for a client_id', { ...NEW, client_id: 17 }, `${ID}got 17.`],
      ['an empty client_id', { ...NEW, client_id: '' }, `${ID}got "".`],
      ['a blank in front', { ...NEW, client_id: ' a' }, `${ID}got " a".`],
      ['a dot segment', { ...NEW, client_id: '..' }, `${ID}got "..".`],
      ['a line break in client_id', { ...NEW, client_id: 'a\nb' }, `${ID}got "a\\nb".`],
      ['no ASCII in client_id', { ...NEW, client_id: 'käse' }, `${ID}got "käse".`],
      ['a long client_id', { ...NEW, client_id: 'x'.repeat(129) }, `${ID}got "${'x'.repeat(57)}...".`],
      ['a Description that is not a string', { ...NEW, description: 7 }, 'description must be a string; got 7.'],
      ['null for a Description', { ...NEW, description: null }, 'description must be a string; got null.'],
      [
        'a long Description',
        { ...NEW, description: 'x'.repeat(1001) },
        'description must have at most 1000 characters; got 1001. Shorten it.',
      ],
      [
        'a line break in the Description',
        { ...NEW, description: 'a\nb' },
        'description must not hold control characters, such as line breaks and tabs; leave them out.',
      ],
      ['no scope', { ...NEW, scope: undefined }, `${SCOPE}got undefined.`],
      ['an empty scope', { ...NEW, scope: '' }, `${SCOPE}got "".`],
      ['an array of scopes', { ...NEW, scope: ['orders:read'] }, `${SCOPE}got an array of 1.`],
      ['two blanks in scope', { ...NEW, scope: 'orders:read  items:read' }, `${SCOPE}got "orders:read  items:read".`],
      [
        'a scope that does not exist',
        { ...NEW, scope: 'orders:read order:read' },
        'Unknown scope "order:read"; did you mean "orders:read"?',
      ],
      ['an unknown member', { ...NEW, desciption: 'x' }, 'Unknown member "desciption"; did you mean "description"?'],
      [
        '__proto__',
        JSON.parse('{"__proto__":{}}'),
        'Unknown member "__proto__"; known are client_id, description, scope',
      ],
      ['an array', [NEW], 'The body must be a JSON object with client_id, description, scope; got an array of 1.'],
    ])('%s', async (_name, body, detail) => {
      const response = await server.post('/clients', body as object);
      expect(response.status).toBe(400);
      expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      const { detail: said, ...rest } = response.body;
      expect(said).toBe(detail.startsWith(ID) ? `${detail} Choose another id, such as "pos-terminal".` : detail);
      expect(rest).toEqual({ type: 'about:blank', title: 'Bad Request', status: 400, code: 'invalid_request' });
      await expectNothingStored();
    });
  });

  describe('a body that cannot be read', () => {
    it.each([
      ['broken JSON', 'application/json', '{"client_id":', 400, 'invalid_request'],
      ['no JSON type', 'text/plain', JSON.stringify(NEW), 415, 'unsupported_media_type'],
      ['a form', 'application/x-www-form-urlencoded', 'client_id=x', 415, 'unsupported_media_type'],
      ['another charset', 'application/json; charset=iso-8859-1', JSON.stringify(NEW), 415, 'unsupported_media_type'],
      [
        '1 MB',
        'application/json',
        JSON.stringify({ ...NEW, description: 'x'.repeat(1_000_000) }),
        413,
        'payload_too_large',
      ],
      ['null', 'application/json', 'null', 400, 'invalid_request'],
      ['a string', 'application/json', '"x"', 400, 'invalid_request'],
    ])('%s', async (_name, type, body, status, code) => {
      for (const call of [request(server.url).post('/clients'), request(server.url).patch('/clients/pos-17')]) {
        const response = await call.set('content-type', type).send(body);
        expect({ status: response.status, code: response.body.code }).toEqual({ status, code });
        expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
        expect(response.body.detail).not.toContain('JSON at position');
      }
      await expectNothingStored();
    });
  });

  it('an empty body counts as an empty object: a registration lacks its id, a PATCH changes nothing', async () => {
    const registration = await request(server.url).post('/clients').set('content-type', 'application/json').send('');
    expect({ status: registration.status, detail: registration.body.detail }).toEqual({
      status: 400,
      detail: `${ID}got undefined. Choose another id, such as "pos-terminal".`,
    });
    const patch = await request(server.url).patch('/clients/pos-17').set('content-type', 'application/json').send('');
    expect({ status: patch.status, description: patch.body.description }).toEqual({
      status: 200,
      description: 'Till 17',
    });
    expect(patch.body).not.toHaveProperty('token');
    await expectNothingStored();
  });

  describe('a change that cannot be: 400', () => {
    it.each([
      [{ client_id: 'other' }, 'Unknown member "client_id"; known are description, scope, disabled'],
      [{ generation: 1 }, 'Unknown member "generation"; known are description, scope, disabled'],
      [{ disabled: 'yes' }, 'disabled must be true or false; got "yes".'],
      [{ description: ['x'] }, 'description must be a string; got an array of 1.'],
      [
        { description: 'new', scope: 'nope:nope' },
        'Unknown scope "nope:nope"; known are orders:read, orders:write, items:read',
      ],
    ])('%j', async (body, detail) => {
      const response = await server.patch('/clients/pos-17', body);
      expect(response.status).toBe(400);
      expect(response.body.detail).toBe(detail);
      await expectNothingStored();
    });

    it.each([
      [{ keep_tokens: 1 }, 'keep_tokens must be true or false; got 1.'],
      [{ keep_token: true }, 'Unknown member "keep_token"; did you mean "keep_tokens"?'],
    ])('%j of a rotation', async (body, detail) => {
      const response = await server.post('/clients/pos-17/secrets', body);
      expect(response.status).toBe(400);
      expect(response.body.detail).toBe(detail);
      await expectNothingStored();
    });
  });

  describe('a URL that does not exist', () => {
    it.each([
      ['bad percent encoding', 'get', '/clients/%zz', 400, 'invalid_request'],
      ['an unknown client, PATCH', 'patch', '/clients/nobody', 404, 'not_found'],
      ['an unknown client, secrets', 'post', '/clients/nobody/secrets', 404, 'not_found'],
      ['an unknown client, revoke', 'post', '/clients/nobody/revoke', 404, 'not_found'],
      ['an unknown path', 'get', '/nowhere', 404, 'not_found'],
      ['an unknown path below a client', 'get', '/clients/pos-17/nowhere', 404, 'not_found'],
    ] as const)('%s', async (_name, method, path, status, code) => {
      const call = request(server.url)[method](path);
      const response = await (method === 'get' ? call : call.send({}));
      expect({ status: response.status, code: response.body.code }).toEqual({ status, code });
      expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
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
      expect({ status: response.status, code: response.body.code }).toEqual({
        status: 405,
        code: 'method_not_allowed',
      });
      expect(response.headers['allow']).toBe(allow);
    });
  });

  it('responds with the headers of helmet and does not reveal Express', async () => {
    const { headers } = await server.get('/clients');
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers['x-content-type-options']).toBe('nosniff');
  });
});
