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
    expect(body.clients[0]).toMatchObject({ client_id: 'pos-17', description: 'Till 17', version: 1, disabled: false });
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
      expect(rest).toEqual({
        type: 'about:blank',
        title: 'Bad Request',
        status: 400,
        code: 'invalid_request',
      });
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
    expect({ status: patch.status, version: patch.body.version }).toEqual({ status: 200, version: 1 });
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
      ['get', '/keys/rotate', 'POST'],
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

/** The requests in the log, without their duration. */
function logged({ log }: TestServer): unknown[] {
  const requests = log.entries.filter(({ message }) => message === 'token server request');
  return requests.map(({ level, fields }) => {
    const { duration_ms: _, ...rest } = fields;
    return { level, ...JSON.parse(JSON.stringify(rest)) } as unknown;
  });
}

describe('the log of the token server', () => {
  it('has a line for each request, with the registered client and why it was refused', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    await server.token(client);
    await server.token(client, { client_secret: 'wrong' });
    await server.token(client, { client_id: 'never-registered' });
    await server.token(client, { scope: 'items:read' });
    await request(server.url).post('/connect/token').type('form').send({ grant_type: 'client_credentials' });
    await server.patch('/clients/pos-17', { disabled: true });
    await server.token(client);
    await server.get('/nothing?client_secret=x');

    const token = { level: 'info', method: 'POST', path: '/connect/token' };
    const refused = { ...token, status: 401, error: 'invalid_client' };
    expect(logged(server)).toEqual([
      { ...token, status: 200, client_id: 'pos-17' },
      { ...refused, client_id: 'pos-17', detail: 'wrong secret' },
      { ...refused, detail: 'no client has this id' },
      {
        ...{ ...token, status: 400, client_id: 'pos-17', error: 'invalid_scope' },
        detail: 'The client is not registered with one of the scopes: it has orders:read orders:write.',
      },
      { ...refused, detail: 'no client id and secret' },
      { level: 'info', method: 'PATCH', path: '/clients/pos-17', status: 200 },
      { ...refused, client_id: 'pos-17', detail: 'disabled' },
      { level: 'info', method: 'GET', path: '/nothing', status: 404, error: 'not_found' },
    ]);
  });

  it('holds no secret, token or body, wherever they were sent', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const token = await server.accessToken(client);
    const { client_secret: secret } = client;
    await server.token(client, { client_id: secret });
    await server.token(client, { client_id: secret, grant_type: 'password' });
    await server.token(client, { scope: secret });
    await server.token(client, { [secret]: 'x' });
    await server.get(`/clients/${secret}`);
    await server.get(`/${token}?access_token=${token}`);
    await server.post('/clients', { client_id: secret, scope: secret });
    await server.introspect(client, token);

    expect(logged(server)).toHaveLength(9);
    const text = JSON.stringify(server.log.entries);
    expect(text).not.toContain(secret);
    expect(text).not.toContain(token.split('.')[1]);
  });

  it('leaves out what resource servers read again and again, unless it fails', async () => {
    const server = await startServer({ adminToken: 'admin-admin-admin' });
    await server.get('/.well-known/openid-configuration/jwks');
    await server.get('/generations?after=0').set('Authorization', 'Bearer admin-admin-admin');
    await server.get('/generations?after=0');

    expect(logged(server)).toEqual([
      { level: 'info', method: 'GET', path: '/generations', status: 401, error: 'missing_token' },
    ]);
  });
});
