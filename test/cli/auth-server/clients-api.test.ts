import { closeAll, decode, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

let server: TestServer;

describe('the API of the clients', () => {
  beforeEach(async () => {
    server = await startServer();
  });

  const NEW = { client_id: 'pos-17', description: 'Till 17', scope: 'orders:read orders:write' };

  function isoNow(): string {
    return new Date(server.time.clock()).toISOString();
  }

  describe('POST /clients', () => {
    it('registers: the same again, with the secret, the generation and times', async () => {
      const response = await server.post('/clients', NEW);
      expect(response.status).toBe(201);
      expect(response.body).toEqual({
        ...NEW,
        disabled: false,
        generation: server.time.clock(),
        created_at: isoNow(),
        updated_at: isoNow(),
        secrets: [{ id: expect.any(String), created_at: isoNow() }],
        published: true,
        client_secret: expect.stringMatching(/^[\w-]{43}$/),
      });
      expect(response.headers['location']).toBe('/clients/pos-17');
      expect(response.headers['cache-control']).toBe('no-store');
    });

    it('shows the secret there and nowhere else', async () => {
      const { client_secret: secret } = (await server.post('/clients', NEW)).body;
      const patched = server.patch('/clients/pos-17', {});
      for (const { text } of [await server.get('/clients'), await server.get('/clients/pos-17'), await patched]) {
        expect(text).toContain('"pos-17"');
        expect(text).not.toContain(secret);
        expect(text).not.toContain('hash');
      }
    });

    it('refuses an id that is taken with 409, and leaves its owner alone', async () => {
      const first = await registerClient(server);
      const response = await server.post('/clients', { ...NEW, description: 'another' });
      expect(response.status).toBe(409);
      expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      expect(response.body).toEqual({
        type: 'about:blank',
        title: 'Conflict',
        status: 409,
        detail:
          'The client id "pos-17" is taken: choose another one, or change the client that has it with PATCH /clients/pos-17.',
        code: 'client_exists',
      });
      expect((await server.get('/clients/pos-17')).body.description).toBe('Till 17');
      await server.accessToken(first);
    });

    it('lets one of many registrations of the same id win', async () => {
      const responses = await Promise.all(Array.from({ length: 8 }, () => server.post('/clients', NEW)));
      expect(responses.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
    });

    it('takes any printable id, which its address carries percent-encoded', async () => {
      const response = await server.post('/clients', { ...NEW, client_id: 'a/b c%d:"e"' });
      expect(response.headers['location']).toBe('/clients/a%2Fb%20c%25d%3A%22e%22');
      expect((await server.get(response.headers['location']!)).body.client_id).toBe('a/b c%d:"e"');
      expect((await server.post(`${response.headers['location']}/revoke`)).status).toBe(200);
    });

    it('keeps a Description as it is', async () => {
      const description = ' Kasse 3 – "Süd" \\ 漢字 🧾 ';
      const response = await server.post('/clients', { ...NEW, description });
      expect(response.body.description).toBe(description);
    });
  });

  describe('GET /clients', () => {
    it('lists what is registered, in order', async () => {
      for (const id of ['b', 'a', 'c']) await registerClient(server, { client_id: id });
      const { status, body } = await server.get('/clients');
      expect(status).toBe(200);
      expect(body.clients.map((client: { client_id: string }) => client.client_id)).toEqual(['b', 'a', 'c']);
      expect(server.auth.list()).toEqual(body.clients);
    });
  });

  describe('PATCH /clients/{client_id}', () => {
    it('responds to a changed Description with the client and a new token, with the scopes of the discarded one', async () => {
      const client = await registerClient(server);
      const old = await server.accessToken(client, 'orders:write');
      await server.time.advance(5);
      const { status, body } = await server.patch('/clients/pos-17', { description: 'Till 18' });
      expect(status).toBe(200);
      expect(body).toMatchObject({ client_id: 'pos-17', description: 'Till 18', generation: client.generation + 5 });
      expect(body.token).toEqual({
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: 3600,
        scope: 'orders:write',
      });
      const { claims } = decode(body.token.access_token);
      expect(claims).toMatchObject({ generation: body.generation, scope: 'orders:write' });
      expect(await server.introspect(client, body.token.access_token)).toMatchObject({ active: true });
      expect(await server.introspect(client, old)).toEqual({ active: false });
    });

    it.each([
      ['the registered scopes when there was no token before', undefined, {}, 'orders:read orders:write'],
      ['no scope that is taken away with it', 'orders:read orders:write', { scope: 'orders:read' }, 'orders:read'],
      ['the registered scopes when none of the old is left', 'orders:write', { scope: 'items:read' }, 'items:read'],
    ])('gives the new token %s', async (_name, granted, patch, scope) => {
      const client = await registerClient(server);
      if (granted) await server.accessToken(client, granted);
      const { body } = await server.patch('/clients/pos-17', { description: 'new', ...patch });
      expect(body.token.scope).toBe(scope);
    });

    it.each([
      ['the same Description', { description: 'Till 17' }],
      ['other scopes alone', { scope: 'items:read' }],
      ['a Description of a client that is disabled with it', { description: 'new', disabled: true }],
    ])('gives no token for %s', async (_name, patch) => {
      await registerClient(server);
      const response = await server.patch('/clients/pos-17', patch);
      expect(response.status).toBe(200);
      expect(response.body).not.toHaveProperty('token');
    });
  });

  it('DELETE responds with 204, and the client is gone', async () => {
    const client = await registerClient(server);
    const token = await server.accessToken(client);
    const other = await registerClient(server, { client_id: 'other' });
    const response = await server.delete('/clients/pos-17');
    expect(response.status).toBe(204);
    expect(response.text).toBe('');
    expect((await server.get('/clients/pos-17')).status).toBe(404);
    expect((await server.delete('/clients/pos-17')).status).toBe(404);
    expect((await server.token(client)).status).toBe(401);
    expect(await server.introspect(other, token)).toEqual({ active: false });
  });

  it('a client registered anew gets a new token with its own scopes, not those of the last token of the deleted one', async () => {
    await server.accessToken(await registerClient(server), 'orders:read');
    expect((await server.delete('/clients/pos-17')).status).toBe(204);
    await registerClient(server);
    const { body } = await server.patch('/clients/pos-17', { description: 'new' });
    expect(body.token.scope).toBe('orders:read orders:write');
  });
});

describe('the generation of a client', () => {
  beforeEach(async () => {
    server = await startServer();
  });

  async function generationAndUpdate(): Promise<{ generation: number; updatedMs: number }> {
    const { generation, updated_at } = (await server.get('/clients/pos-17')).body;
    return { generation, updatedMs: Date.parse(updated_at) };
  }

  const patch = (body: object) => () => server.patch('/clients/pos-17', body);
  const rotate = (body?: object) => () => server.post('/clients/pos-17/secrets', body);

  it.each([
    ['another Description', patch({ description: 'Till 18' })],
    ['white space in the Description', patch({ description: 'Till  17' })],
    ['white space at its end', patch({ description: 'Till 17 ' })],
    ['another case in the Description', patch({ description: 'till 17' })],
    ['an empty Description', patch({ description: '' })],
    ['a scope taken away', patch({ scope: 'orders:read' })],
    ['a scope in place of another', patch({ scope: 'orders:read items:read' })],
    ['disabled', patch({ disabled: true })],
    ['another secret', rotate()],
    ['another secret, the others revoked', rotate({ revoke_previous: true })],
    ['revoke', () => server.post('/clients/pos-17/revoke')],
  ])('moves with: %s', async (_name, change) => {
    const { generation } = await registerClient(server);
    await server.time.advance(1_000);
    expect((await change()).status).toBeLessThan(300);
    const movedMs = generation + 1_000;
    expect(await generationAndUpdate()).toEqual({ generation: movedMs, updatedMs: movedMs });
  });

  it.each([
    ['a further scope', patch({ scope: 'orders:read orders:write items:read' }), 1_000],
    ['another secret with keep_tokens', rotate({ keep_tokens: true }), 1_000],
    ['the same Description', patch({ description: 'Till 17' }), 0],
    ['the same scopes in another order', patch({ scope: 'orders:write orders:read' }), 0],
    ['enabled as before', patch({ disabled: false }), 0],
    ['no member at all', patch({}), 0],
  ])('stays with: %s', async (_name, change, updatedAfterMs) => {
    const { generation } = await registerClient(server);
    await server.time.advance(1_000);
    expect((await change()).status).toBeLessThan(300);
    expect(await generationAndUpdate()).toEqual({ generation, updatedMs: generation + updatedAfterMs });
  });

  it('moves when the client is disabled, and stays when it is enabled again', async () => {
    const client = await registerClient(server);
    const token = await server.accessToken(client);
    const { generation } = (await server.patch('/clients/pos-17', { disabled: true })).body;
    expect(generation).toBeGreaterThan(client.generation);
    expect((await server.token(client)).status).toBe(401);
    const enabled = (await server.patch('/clients/pos-17', { disabled: false })).body;
    expect(enabled).toMatchObject({ generation, disabled: false });
    expect((await server.token(client)).status).toBe(200);
    expect(await server.introspect(client, token)).toEqual({ active: false });
  });

  describe('when the earlier tokens expire', () => {
    const expiry = ({ body }: { body: object }): object =>
      Object.fromEntries(Object.entries(body).filter(([name]) => name.startsWith('earlier_tokens')));
    const iso = (ms: number): string => new Date(ms).toISOString();

    it('is said of the last token since the start, the one of the change before included', async () => {
      const client = await registerClient(server);
      await server.accessToken(client);
      await server.time.advance(1_500);
      const issuedMs = server.time.clock();
      await server.accessToken(client);
      await server.time.advance(60_000);
      const inSeconds = (ms: number): number => Math.floor(ms / 1000) * 1000;
      const until = iso(inSeconds(issuedMs) + 3_600_000);
      const describedMs = server.time.clock();
      expect(expiry(await patch({ description: 'Front' })())).toEqual({ earlier_tokens_expire_at: until });
      await server.time.advance(60_000);
      const ofSuccessor = { earlier_tokens_expire_at: iso(inSeconds(describedMs) + 3_600_000) };
      expect(expiry(await server.post('/clients/pos-17/revoke'))).toEqual(ofSuccessor);
      expect(expiry(await server.post('/clients/pos-17/secrets'))).toEqual(ofSuccessor);
    });

    it('is said as the latest time after a start, which forgets what was issued', async () => {
      const client = await registerClient(server);
      await server.accessToken(client);
      server = await server.restart();
      const by = { earlier_tokens_expire_by: iso(server.time.clock() + 3_600_000) };
      expect(expiry(await server.post('/clients/pos-17/revoke'))).toEqual(by);
    });

    it('is not said where they have expired, and where the change discards none', async () => {
      const client = await registerClient(server);
      await server.accessToken(client);
      expect(expiry(await patch({ description: client.description })())).toEqual({});
      expect(expiry(await server.post('/clients/pos-17/secrets', { keep_tokens: true }))).toEqual({});
      await server.time.advance(3_600_000);
      expect(expiry(await server.post('/clients/pos-17/revoke'))).toEqual({});
    });
  });

  it('is max(previous + 1, now): it goes on while the clock stands still or steps back', async () => {
    const { generation } = await registerClient(server);
    const revoke = async () => (await server.post('/clients/pos-17/revoke')).body.generation;
    expect(await revoke()).toBe(generation + 1);
    server.time.step(-3_600_000);
    expect(await revoke()).toBe(generation + 2);
    server.time.step(7_200_000);
    expect(await revoke()).toBe(generation + 3_600_000);
  });

  it('is above the tombstone when a deleted id is registered again, also after a restart with a clock that is slow', async () => {
    const first = await registerClient(server);
    const token = await server.accessToken(first);
    await server.delete('/clients/pos-17');
    server.time.step(-3_600_000);
    server = await server.restart();
    const again = await registerClient(server);
    expect(again).toMatchObject({ generation: first.generation + 2 });
    expect(await server.introspect(again, token)).toEqual({ active: false });
  });

  describe('secrets', () => {
    it('are two at most: the third rotation ends the oldest', async () => {
      const first = await registerClient(server);
      const second = (await server.post('/clients/pos-17/secrets')).body;
      expect((await server.token(first)).status).toBe(200);
      expect((await server.token(second)).status).toBe(200);
      const third = (await server.post('/clients/pos-17/secrets', { keep_tokens: true })).body;
      expect(third.secrets).toHaveLength(2);
      expect((await server.token(first)).status).toBe(401);
      expect((await server.token(second)).status).toBe(200);
      expect((await server.token(third)).status).toBe(200);
    });

    it('end immediately with revoke_previous', async () => {
      const first = await registerClient(server);
      const response = await server.post('/clients/pos-17/secrets', { revoke_previous: true });
      expect(response.status).toBe(201);
      expect(response.body).toMatchObject({ client_id: 'pos-17', client_secret: expect.stringMatching(/^[\w-]{43}$/) });
      expect(response.body.secrets).toHaveLength(1);
      expect((await server.token(first)).status).toBe(401);
      expect((await server.token(response.body)).status).toBe(200);
    });
  });

  it('a deleted client is not listed, and is named when it is asked for', async () => {
    await registerClient(server);
    await server.delete('/clients/pos-17');
    expect((await server.get('/clients')).body).toEqual({ clients: [] });
    expect(server.auth.list()).toEqual([]);
    const detail = 'No client has this id: GET /clients lists the registered ones, POST /clients registers one.';
    expect((await server.get('/clients/pos-17')).body).toMatchObject({ code: 'not_found', detail });
  });
});
