import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { API, ok, scene, SECRET } from './scene';

describe('a token request', () => {
  it('sends id and secret form-encoded by Basic, and follows no redirect', async () => {
    const { client, tokenRequests } = scene(ok);
    await client.fetch('/orders');
    const [{ init, headers } = { init: {}, headers: new Headers() }] = tokenRequests;
    expect(Buffer.from(headers.get('authorization')?.slice(6) ?? '', 'base64').toString()).toBe(
      'till%3A1:p%2Bss%3Aw%25rd+%C3%A4',
    );
    expect((init.body as URLSearchParams).toString()).toBe('grant_type=client_credentials&scope=orders%3Aread');
    expect([init.redirect, headers.get('accept')]).toEqual(['manual', 'application/json']);
  });

  it('sends them in the form with auth: post, beside further parameters', async () => {
    const { client, tokenRequests } = scene(ok, { auth: 'post', parameters: { resource: API } });
    await client.token();
    expect(Object.fromEntries(tokenRequests[0]?.init.body as URLSearchParams)).toEqual({
      grant_type: 'client_credentials',
      client_id: 'till:1',
      client_secret: SECRET,
      scope: 'orders:read',
      resource: API,
    });
    expect(tokenRequests[0]?.headers.get('authorization')).toBeNull();
  });

  it('gives what the response says', async () => {
    const { client } = scene(ok);
    expect(await client.token()).toEqual({
      accessToken: 'token-1',
      expiresAtMs: 3_605_000,
      scope: 'orders:read',
      response: { access_token: 'token-1', token_type: 'Bearer', expires_in: 3600, scope: 'orders:read' },
    });
  });

  it.each([
    [3600, 3_540_000],
    ['3600', 3_540_000],
    [100, 90_000],
    [undefined, 54_000],
    [0, 54_000],
    [-1, 54_000],
    ['soon', 54_000],
  ])('is made again when a tenth of expires_in %j, at most 60 s, is left', async (expires_in, renewedAfterMs) => {
    const s = scene(ok);
    s.token = (number) => Response.json({ access_token: `token-${number}`, expires_in });
    await s.client.fetch('/orders');
    s.advance(renewedAfterMs - 1);
    await s.client.fetch('/orders');
    s.advance(1);
    await s.client.fetch('/orders');
    expect(s.calls.map(({ token }) => token)).toEqual([1, 1, 2]);
  });

  it('is one for all that wait', async () => {
    const { client, tokenRequests, calls } = scene(ok);
    await Promise.all(Array.from({ length: 100 }, () => client.fetch('/orders')));
    expect([tokenRequests.length, calls.length]).toEqual([1, 100]);
  });

  it('that fails while the token is good is no failure, and is not made again before its Retry-After', async () => {
    const s = scene(ok);
    await s.client.fetch('/orders');
    s.token = () => new Response('', { status: 503, headers: { 'Retry-After': '5' } });
    s.advance(3_540_000);
    for (let n = 0; n < 3; n += 1) expect((await s.client.fetch('/orders')).status).toBe(200);
    s.advance(4_999);
    await s.client.fetch('/orders');
    expect(s.tokenRequests).toHaveLength(2);
    s.advance(1);
    await s.client.fetch('/orders');
    expect(s.tokenRequests).toHaveLength(3);
    s.advance(60_000);
    await expect(s.client.fetch('/orders')).rejects.toMatchObject({
      name: 'TokenRequestError',
      status: 503,
      retryAfterMs: 5_000,
    });
  });

  it('is not cancelled by the signal of one of those who wait', async () => {
    const s = scene(ok);
    const controller = new AbortController();
    let respond: (response: Response) => void = () => undefined;
    s.token = () => new Promise((resolve) => (respond = resolve));
    const first = s.client.fetch('/orders', { signal: controller.signal });
    const second = s.client.fetch('/orders');
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error('the customer left'));
    await expect(first).rejects.toThrow('the customer left');
    respond(Response.json({ access_token: 'token-1' }));
    expect((await second).status).toBe(200);
    expect(s.calls).toHaveLength(1);
  });
});

describe('a token request that fails', () => {
  it.each([
    [
      'an OAuth error',
      () => Response.json({ error: 'invalid_client', error_description: 'No.' }, { status: 401 }),
      { error: 'invalid_client', description: 'No.', status: 401 },
    ],
    [
      'a limit',
      () => Response.json({ error: 'slow_down' }, { status: 429, headers: { 'Retry-After': '90' } }),
      { error: 'slow_down', status: 429, retryAfterMs: 90_000 },
    ],
    ['a page', () => new Response('<p>Hello'), { status: 200, code: 'ERR_RESPONSE' }],
    ['a page of a proxy', () => new Response('<p>Bad gateway', { status: 502 }), { status: 502, code: 'ERR_RESPONSE' }],
    ['null', () => Response.json(null), { status: 200, code: 'ERR_RESPONSE' }],
    [
      'a redirect',
      () => new Response('', { status: 302, headers: { Location: 'https://evil.example/' } }),
      { status: 302, code: 'ERR_REDIRECT' },
    ],
    [
      'another type of token',
      () => Response.json({ access_token: 'a', token_type: 'DPoP' }),
      { status: 200, code: 'ERR_RESPONSE' },
    ],
    [
      'a token that no header can carry',
      () => Response.json({ access_token: 'a\r\nb' }),
      { status: 200, code: 'ERR_RESPONSE' },
    ],
    [
      'a cut',
      () => Promise.reject(Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNRESET' } })),
      { code: 'ECONNRESET' },
    ],
    ['an error of others', () => Promise.reject(new Error(`POST with ${SECRET}`)), { code: 'ERR_NETWORK' }],
  ] as const)('because of %s says so, to all that waited, and holds no secret', async (_, respond, expected) => {
    const s = scene(ok);
    s.token = respond;
    const errors = await Promise.all([1, 2, 3].map(() => s.client.fetch('/orders').catch((error: unknown) => error)));
    expect(new Set(errors).size).toBe(1);
    expect(errors[0]).toMatchObject({ name: 'TokenRequestError', ...expected });
    for (const text of [inspect(errors[0], { depth: 9, showHidden: true }), JSON.stringify(errors[0])]) {
      expect(text).not.toContain(SECRET);
    }
    expect('cause' in (errors[0] as object)).toBe(false);
    expect(s.tokenRequests).toHaveLength(1);
  });

  it.each([
    [undefined, 1_000],
    ['0', 0],
    ['30', 30_000],
    ['3600', 60_000],
  ])('with Retry-After %j is not repeated for %i ms', async (retryAfter, restMs) => {
    const s = scene(ok);
    s.token = () =>
      new Response('', { status: 503, ...(retryAfter !== undefined && { headers: { 'Retry-After': retryAfter } }) });
    await expect(s.client.fetch('/orders')).rejects.toThrow('503');
    if (restMs > 0) {
      s.advance(restMs - 1);
      await expect(s.client.fetch('/orders')).rejects.toThrow('503');
      expect(s.tokenRequests).toHaveLength(1);
      s.advance(1);
    }
    await expect(s.client.fetch('/orders')).rejects.toThrow('503');
    expect(s.tokenRequests).toHaveLength(2);
  });

  it('does not repeat the Basic credential that the server sends back', async () => {
    const s = scene(ok);
    s.token = (number) => {
      const sent = s.tokenRequests[number - 1]?.headers.get('authorization');
      return Response.json({ error: 'invalid_client', error_description: `got ${sent}` }, { status: 400 });
    };
    await expect(s.client.fetch('/orders')).rejects.toMatchObject({ error: 'invalid_client', description: undefined });
  });

  it('does not repeat a secret that the server sends back', async () => {
    const s = scene(ok);
    s.token = () =>
      Response.json(
        { error: 'invalid_client', error_description: 'secret p%2Bss%3Aw%25rd+%C3%A4 is wrong' },
        { status: 400 },
      );
    await expect(s.client.fetch('/orders')).rejects.toMatchObject({ error: 'invalid_client', description: undefined });
  });
});

describe('the timers of a client', () => {
  /** Runs a script in a process of its own, where time is a hundred times as fast, and the pending timers are known. */
  function run(script: string): unknown {
    const prelude = `
      const { createClient } = require('./src/client/index.ts');
      const { setTimeout: set, clearTimeout: clear } = globalThis;
      const pending = new Set();
      globalThis.setTimeout = (work, ms) => {
        const timer = set(() => { pending.delete(timer); work(); }, ms / 100);
        pending.add(timer);
        return timer;
      };
      globalThis.clearTimeout = (timer) => { pending.delete(timer); clear(timer); };
      const token = async () => Response.json({ access_token: 'a' });
      const client = (fetch) => createClient({
        tokenUrl: 'http://localhost/token', clientId: 'till', clientSecret: 'a', baseUrl: 'http://localhost/v1', fetch });
    `;
    const args = [
      '--conditions=source',
      '-r',
      './scripts/run-sources.cjs',
      '-e',
      `${prelude}\n(async () => {${script}})()`,
    ];
    return JSON.parse(execFileSync(process.execPath, args, { cwd: join(__dirname, '../..'), encoding: 'utf8' }));
  }

  it('end with the token request', () => {
    expect(run(`await client(token).token(); console.log(pending.size);`)).toBe(0);
  });

  it('end a token request after 10 s, whatever fetch says to its signal', () => {
    const refuse = `new Promise((_, reject) => signal.addEventListener('abort', () => reject({ code: 'ABORTED' })))`;
    const fetches = [`(url, { signal }) => ${refuse}`, '() => new Promise(() => undefined)'];
    for (const fetch of fetches) {
      const script = `await client(${fetch}).token().catch(({ code }) => console.log(JSON.stringify([code, pending.size])));`;
      expect(run(script)).toEqual(['ETIMEDOUT', 0]);
    }
  });

  it('end with the signal of the call that waits', () => {
    const script = `
      const end = new AbortController();
      const busy = async () => { set(() => end.abort()); return new Response('', { status: 503, headers: { 'Retry-After': '30' } }); };
      const call = client((url) => (url.endsWith('/token') ? token() : busy())).fetch('/orders', { signal: end.signal });
      await call.catch(({ name }) => console.log(JSON.stringify([name, pending.size])));`;
    expect(run(script)).toEqual(['AbortError', 0]);
  });
});

describe('options', () => {
  it.each([
    [{ tokenUrl: 'login.example.com' }, 'tokenUrl'],
    [{ tokenUrl: 'https://user:secret@login.example.com/' }, 'tokenUrl'],
    [{ baseUrl: undefined }, 'baseUrl'],
    [{ clientId: '' }, 'clientId'],
    [{ clientSecret: 5 }, 'clientSecret'],
    [{ auth: 'none' }, 'auth'],
    [{ parameters: { resource: 5 } }, 'parameters'],
    [{ fetch: 'x' }, 'fetch'],
    [{ secret: 'hunter2' }, 'unknown option secret'],
  ])('%j is a TypeError that names it and quotes no value', (options, name) => {
    const attempt = (): unknown => scene(ok, options as never);
    expect(attempt).toThrow(TypeError);
    expect(attempt).toThrow(name);
    expect(attempt).not.toThrow(/hunter2|user:secret/);
  });

  it('a client shows neither secret nor token', async () => {
    const { client } = scene(ok);
    await client.fetch('/orders');
    expect(inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client)).not.toMatch(/token-1|p\+ss/);
  });
});
