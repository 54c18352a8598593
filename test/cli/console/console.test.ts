import { once } from 'node:events';
import { startDev } from './dev-scene';
import type { DevScene } from './dev-scene';

let dev: DevScene;

describe('the console of a scaffold with requests', () => {
  beforeAll(async () => {
    dev = await startDev();
  }, 300_000);
  afterAll(() => dev.stop());

  const timelineOf = async (id: string) => {
    const { body } = await dev.call('get', '/console/api/state');
    return body.clients.find(({ client_id }: { client_id: string }) => client_id === id).timeline;
  };

  describe('why the last request was denied', () => {
    it('names the missing scope, what the token has, and what to do', async () => {
      const token = await dev.token(dev.kiosk, 'orders:read');
      const { headers } = await dev.api('post', '/v1/orders', token).expect(403);
      expect(await dev.lastDenied()).toMatchObject({
        server: 'api',
        method: 'POST',
        path: '/v1/orders',
        status: 403,
        client_id: 'kiosk',
        reason: 'insufficient_scope',
        request_id: headers['x-request-id'],
        why: {
          outcome: 'refused',
          got: 'orders:read',
          expected: 'orders:write',
          fix: 'Add orders:write to the scopes of kiosk, if it should have this access, then request a new token.',
          claims: { client_id: 'kiosk', scope: 'orders:read' },
          verified: true,
        },
      });
    });

    it('says that the client only has to ask for a scope that it is registered with', async () => {
      await dev.api('post', '/v1/orders', await dev.token(dev.till, 'orders:read')).expect(403);
      expect((await dev.lastDenied()).why.fix).toBe(
        'Request the token with scope=orders:write: pos-terminal is registered with it.',
      );
    });

    it('suggests no other configuration for a token that anybody could have made', async () => {
      const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
      const madeUp = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ typ: 'Bearer', azp: 'till-7' })}.AAAA`;
      await dev.api('get', '/v1/orders', madeUp).expect(401);
      const { reason, why } = await dev.lastDenied();
      const fix = 'Send the access_token of the token response, not the id_token.';
      expect([reason, why.verified, why.fix]).toEqual(['wrong_type', false, fix]);
    });

    it('lists the checks in order up to the one that failed: a token discarded with the Description', async () => {
      const client = await dev.register('till-7', 'orders:read', 'Front');
      const token = await dev.token(client, 'orders:read');
      await dev.api('get', '/v1/orders', token).expect(200);
      await dev.call('patch', '/clients/till-7', { description: 'Back' }).expect(200);
      await dev.discarded(token);
      const { client_id, reason, why } = await dev.lastDenied();
      expect([client_id, reason, why.verified]).toEqual(['till-7', 'superseded', true]);
      const checks = why.checks.map(({ check, outcome }: Record<string, string>) => `${check} ${outcome}`);
      const passed = ['structure', 'header', 'key', 'signature', 'claims'].map((check) => `${check} passed`);
      expect(checks).toEqual([...passed, 'generation failed', 'scope not reached']);
      const [{ generation }, before] = await timelineOf('till-7');
      expect(why).toMatchObject({ got: String(before.generation), expected: `${generation} or later` });
    });

    it('explains a request without a token', async () => {
      await dev.api('get', '/v1/items').expect(401);
      expect((await dev.lastDenied()).why).toMatchObject({
        got: 'no Authorization header',
        expected: 'Authorization: Bearer <ACCESS_TOKEN>',
        verified: false,
      });
    });

    it('shows what the token server said, and to whom', async () => {
      const form = { grant_type: 'client_credentials', client_id: 'kiosk', client_secret: 'no', scope: 'orders:read' };
      await dev.call('post', '/connect/token').type('form').send(form).expect(401);
      expect(await dev.lastDenied()).toMatchObject({ server: 'tokens', client_id: 'kiosk', reason: 'invalid_client' });
    });
  });

  it('filters requests by server and status, newest first', async () => {
    const list = async (query: string): Promise<{ id: number; server: string; status: number }[]> =>
      (await dev.call('get', `/console/api/requests?${query}`)).body.requests;
    await dev.api('get', '/v1/nothing', await dev.token(dev.till, 'orders:read'));
    await dev.observed();
    const all = await list('');
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).sort((a, b) => b - a));
    for (const { status } of await list('status=denied')) expect([401, 403]).toContain(status);
    for (const { status } of await list('status=4xx')) expect(Math.floor(status / 100)).toBe(4);
    expect((await list('status=404&server=api&limit=1')).map(({ status }) => status)).toEqual([404]);
    expect(new Set((await list('server=tokens')).map(({ server }) => server))).toEqual(new Set(['tokens']));
  });

  it('keeps a timeline of generations with what began each', async () => {
    await dev.register('till-8', 'orders:read items:read', 'Eight');
    await dev.call('patch', '/clients/till-8', { scope: 'orders:read' }).expect(200);
    await dev.call('post', '/clients/till-8/secrets', {}).expect(201);
    await dev.call('post', '/clients/till-8/revoke').expect(200);
    await dev.call('patch', '/clients/till-8', { disabled: true }).expect(200);
    expect((await timelineOf('till-8')).map(({ cause }: { cause: string }) => cause)).toEqual([
      'disabled',
      'tokens revoked',
      'secret rotated',
      'scopes removed: items:read',
      'registered',
    ]);
  });

  it('says which client has not fetched a new token since a change, also of a token from before the start', async () => {
    const isOut = async (id: string): Promise<boolean> => {
      const { body } = await dev.call('get', '/console/api/state');
      return body.clients.find(({ client_id }: { client_id: string }) => client_id === id).out;
    };
    const client = await dev.register('till-10', 'orders:read');
    expect(await isOut('till-10')).toBe(false);
    await dev.call('patch', '/clients/till-10', { description: 'Never had a token' }).expect(200);
    expect(await isOut('till-10')).toBe(false);
    const { body: described } = await dev.call('patch', '/clients/till-10', { description: 'Ten' }).expect(200);
    await dev.call('post', '/clients/till-10/revoke').expect(200);
    await dev.discarded(described.token.access_token);
    await dev.observed();
    expect(await isOut('till-10')).toBe(true);
    const token = await dev.token(client, 'orders:read');
    expect(await isOut('till-10')).toBe(false);
    await dev.api('get', '/v1/orders', described.token.access_token).expect(401);
    await dev.observed();
    expect(await isOut('till-10')).toBe(false);
    await dev.call('post', '/clients/till-10/revoke').expect(200);
    expect(await isOut('till-10')).toBe(true);
    await dev.discarded(token);
    await dev.call('delete', '/clients/till-10').expect(204);
    await dev.register('till-10', 'orders:read');
    expect(await isOut('till-10')).toBe(false);
  });

  it('links a reason to the page that explains it', async () => {
    await dev.api('get', '/v1/items').expect(401);
    expect((await dev.lastDenied()).type).toBe(`${dev.base}/problems/missing_token`);
  });

  describe('replay', () => {
    const replay = (id: number | string, body: object = {}) =>
      dev.call('post', `/console/api/requests/${id}/replay`, body);

    it('sends a request again, as its client with a new token', async () => {
      await dev.api('post', '/v1/orders', await dev.token(dev.till, 'orders:read')).expect(403);
      const { id } = await dev.lastDenied();
      const { body } = await replay(id, { body: {} }).expect(200);
      expect(body.status).toBe(400);
      expect(JSON.parse(body.text)).toMatchObject({ code: 'invalid_request' });
      let [latest] = [{ id }];
      while (latest.id === id)
        [latest] = (await dev.call('get', '/console/api/requests?server=api&limit=1')).body.requests;
      expect(latest).toMatchObject({ method: 'POST', path: '/v1/orders', client_id: 'pos-terminal' });
    });

    it('sends no token where there was none', async () => {
      await dev.api('get', '/v1/items').expect(401);
      const { body } = await replay((await dev.lastDenied()).id).expect(200);
      expect(JSON.parse(body.text).code).toBe('missing_token');
    });

    it('says what is missing for a client whose secret is not kept here', async () => {
      const client = await dev.register('till-5', 'orders:read');
      await dev.api('post', '/v1/orders', await dev.token(client, 'orders:read')).expect(403);
      const { body } = await replay((await dev.lastDenied()).id).expect(409);
      expect(body).toMatchObject({ code: 'not_replayable', detail: expect.stringContaining('secret of till-5') });
    });

    it('refuses a request to the token server, and a path of which a part was left out', async () => {
      const form = { grant_type: 'client_credentials', client_id: 'kiosk', client_secret: 'no', scope: 'orders:read' };
      await dev.call('post', '/connect/token').type('form').send(form).expect(401);
      await replay((await dev.lastDenied()).id).expect(409);
      await dev.api('get', `/v1/orders/${'a'.repeat(300)}`).expect(401);
      await replay((await dev.lastDenied()).id).expect(409);
      await replay('nothing').expect(404);
    });

    it('takes JSON only, which a form of another page cannot send', async () => {
      await dev.api('get', '/v1/items').expect(401);
      const path = `/console/api/requests/${(await dev.lastDenied()).id}/replay`;
      await dev.call('post', path).type('form').send('a=b').expect(400);
      await dev.call('post', path).type('text/plain').send('{}').expect(400);
    });
  });

  it('names the command that finds these servers from another terminal', async () => {
    const { body } = await dev.call('get', '/console/api/state').expect(200);
    expect(body.command).toMatch(/^TILLGATE_DATA_DIR=\/\S+ tillgate$/);
  });

  describe('the token inspector', () => {
    const inspect = (body: object | undefined) => dev.call('post', '/console/api/inspect', body);

    it('says for which routes a token would be accepted', async () => {
      const { body } = await inspect({ token: await dev.token(dev.till, 'orders:read menus:read') }).expect(200);
      expect(body).toMatchObject({ outcome: 'authenticated', status: 200, claims: { client_id: 'pos-terminal' } });
      expect(body.routes).toContain('GET /v1/orders/{id}');
      expect(body.routes).toContain('GET /v1/menus');
      expect(body.routes).not.toContain('POST /v1/orders');
    });

    it('says why a token is refused, and what to do', async () => {
      const [header, payload] = (await dev.token(dev.till, 'orders:read')).split('.');
      const { body } = await inspect({ token: `${header}.${payload}.${'A'.repeat(342)}` }).expect(200);
      expect(body).toMatchObject({ outcome: 'refused', status: 401, verified: false, routes: [] });
      expect(body.checks.find(({ outcome }: { outcome: string }) => outcome === 'failed').reason).toBe('bad_signature');
      expect(body.fix).toMatch(/\w/);
      const opaque = await inspect({ token: 'opaque' }).expect(200);
      expect(opaque.body.fix).toContain('the token is opaque');
    });

    it.each([undefined, {}, { token: '' }, { token: 7 }, { token: ['a'] }])('refuses the body %j', async (body) => {
      await inspect(body).expect(400);
    });
  });

  it('links to the documentation page of the scaffold', async () => {
    const { body } = await dev.call('get', '/console/api/state').expect(200);
    expect(body.docs_url).toBe(`${body.base_url}/docs/`);
    await dev.api('get', '/docs/').expect(200);
  });

  it('tells open pages of each request and of changed clients', async () => {
    const { response, text } = await dev.events();
    expect(response.headers['content-type']).toMatch(/^text\/event-stream/);
    await dev.register('till-6', 'orders:read');
    while (!text().includes('event: request')) await once(response, 'data');
    expect(text()).toContain('event: clients\ndata: {}\n\n');
    expect(text()).toContain('"path":"/clients","status":201');
    response.destroy();
  });
});
