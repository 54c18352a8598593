import { REASONS } from '../../src/gate/core/reasons';
import { API, ok, refused, scene } from './scene';

describe('after a discard', () => {
  /** Accepts the tokens from this one on. */
  const from = (least: () => number) => (token: number) => (token >= least() ? ok() : refused());

  it('100 parallel calls cost one token request and are all answered', async () => {
    let least = 1;
    const s = scene(from(() => least));
    await s.client.fetch('/orders');
    least = 2;
    const responses = await Promise.all(Array.from({ length: 100 }, () => s.client.fetch('/orders')));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(100);
    expect(s.tokenRequests).toHaveLength(2);
  });

  it('late refusals do not throw the new token away', async () => {
    let least = 1;
    const late: (() => void)[] = [];
    const s = scene(async (token) => {
      if (token >= least) return ok();
      if (late.length < 20) await new Promise<void>((resolve) => late.push(resolve));
      return refused();
    });
    await s.client.fetch('/orders');
    least = 2;
    const first = Promise.all(Array.from({ length: 20 }, () => s.client.fetch('/orders')));
    await new Promise((resolve) => setImmediate(resolve));
    for (const respond of late) {
      respond();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await first).every(({ status }) => status === 200)).toBe(true);
    expect(s.tokenRequests).toHaveLength(2);
  });

  it('by the time of issue costs two: one wait of a second for all', async () => {
    let least = 1;
    const s = scene(from(() => least));
    await s.client.fetch('/orders');
    least = 3;
    const responses = await Promise.all(Array.from({ length: 100 }, () => s.client.fetch('/orders')));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(100);
    expect([s.tokenRequests.length, s.sleeps]).toEqual([3, [1_000]]);
  });

  it('by the time of issue, a token is as old as its response: an earlier request would be of the same second', async () => {
    let least = 1;
    const s = scene(from(() => least));
    s.token = (number) => {
      s.advance(400);
      return Response.json({ access_token: `token-${number}`, expires_in: 3600 });
    };
    await s.client.fetch('/orders');
    least = 3;
    expect((await s.client.fetch('/orders')).status).toBe(200);
    expect([s.tokenRequests.map(({ atMs }) => atMs), s.sleeps]).toEqual([[5_000, 5_400, 6_800], [1_000]]);
  });

  it('a token that was never accepted is replaced immediately if it replaces none', async () => {
    const s = scene(from(() => 2));
    expect((await s.client.fetch('/orders')).status).toBe(200);
    expect([s.tokenRequests.length, s.sleeps]).toEqual([2, []]);
  });

  it('two that were never accepted rest for 30 s, whoever calls', async () => {
    const s = scene(() => refused());
    const statuses = await Promise.all(Array.from({ length: 20 }, () => s.client.fetch('/orders')));
    expect(statuses.every(({ status }) => status === 401)).toBe(true);
    expect(s.tokenRequests).toHaveLength(2);
    s.advance(29_999);
    expect((await s.client.fetch('/orders')).status).toBe(401);
    expect(s.tokenRequests).toHaveLength(2);
    s.advance(1);
    expect((await s.client.fetch('/orders')).status).toBe(401);
    expect(s.tokenRequests).toHaveLength(3);
    expect((await s.client.fetch('/orders')).status).toBe(401);
    expect(s.tokenRequests).toHaveLength(3);
  });

  it('403, 404 and a redirect mean that the token was accepted; 429 and 503 mean nothing', async () => {
    for (const [status, accepted] of [
      [403, true],
      [404, true],
      [302, true],
      [429, false],
      [503, false],
      [500, false],
    ] as const) {
      let isFirst = true;
      const s = scene((token) => {
        if (token > 2) return ok();
        if (token === 1 || !isFirst) return refused();
        isFirst = false;
        return new Response('', { status });
      });
      await s.client.fetch('/orders');
      expect((await s.client.fetch('/orders')).status).toBe(accepted ? 200 : 401);
    }
  });

  it('a failed token request is the error of all, and no token is sent that was refused', async () => {
    let least = 1;
    const s = scene(from(() => least));
    await s.client.fetch('/orders');
    least = 2;
    s.token = () => new Response('', { status: 429, headers: { 'Retry-After': '10' } });
    const errors = await Promise.all(
      Array.from({ length: 50 }, () => s.client.fetch('/orders').catch((error: unknown) => error)),
    );
    expect(new Set(errors).size).toBe(1);
    const { length } = s.calls;
    await expect(s.client.fetch('/orders')).rejects.toBe(errors[0]);
    expect([s.calls.length, s.tokenRequests.length]).toEqual([length, 2]);
  });
});

describe('a challenge', () => {
  it.each([
    ['Bearer error="invalid_token"', 2],
    ['Bearer realm="api", error=invalid_token', 2],
    ['Basic realm="x", Bearer realm="api",error = "invalid_token"', 2],
    ['DPoP algs="ES256", error="invalid_token"', 2],
    ['bearer ERROR="invalid_token"', 2],
    ['Bearer realm="api"', 1],
    ['Bearer error="insufficient_scope"', 1],
    ['Bearer error_description="error=\\"invalid_token\\""', 1],
    ['Bearer realm="error=invalid_token"', 1],
    ['Bearer x-error="invalid_token"', 1],
    ['', 1],
  ])('%s: the call is sent %i times', async (challenge, sends) => {
    const s = scene(() => refused(challenge));
    await s.client.fetch('/orders');
    expect(s.calls).toHaveLength(sends);
  });

  it.each([
    ['superseded', 2],
    ['invalid_token', 2],
    ['missing_token', 1],
    [undefined, 1],
  ])('that a page cannot read is known by the code %s of the problem body', async (code, sends) => {
    const headers = { 'Content-Type': 'application/problem+json; charset=utf-8' };
    const s = scene(() => new Response(JSON.stringify({ code }), { status: 401, headers }));
    const response = await s.client.fetch('/orders');
    expect(s.calls).toHaveLength(sends);
    expect(await response.json()).toEqual({ code });
  });
});

describe('a call', () => {
  it.each([
    ['GET', '5', 200, 2],
    ['HEAD', '0', 200, 2],
    ['GET', '31', 503, 1],
    ['GET', undefined, 503, 1],
    ['POST', '1', 503, 1],
    ['DELETE', '1', 503, 1],
  ])('%s with Retry-After %s ends with %i after %i', async (method, retryAfter, status, sends) => {
    let isDown = true;
    const s = scene(() => {
      const response = isDown
        ? new Response('', { status: 503, ...(retryAfter && { headers: { 'Retry-After': retryAfter } }) })
        : ok();
      isDown = false;
      return response;
    });
    expect((await s.client.fetch('/orders', { method })).status).toBe(status);
    expect([s.calls.length, s.tokenRequests.length]).toEqual([sends, 1]);
    expect(s.sleeps).toEqual(sends === 2 ? [Number(retryAfter) * 1_000] : []);
  });

  it('waits for Retry-After once', async () => {
    const s = scene(() => new Response('', { status: 429, headers: { 'Retry-After': '1' } }));
    expect((await s.client.fetch('/orders')).status).toBe(429);
    expect(s.calls).toHaveLength(2);
  });

  it.each([
    ['a text', () => 'a', 200],
    ['a form', () => new URLSearchParams({ a: 'b' }), 200],
    ['a multipart form', () => new FormData(), 200],
    ['a blob', () => new Blob(['a']), 200],
    ['a buffer', () => Buffer.from('a'), 200],
    ['an ArrayBuffer', () => new ArrayBuffer(2), 200],
    ['a stream', () => new Blob(['a']).stream(), 401],
    [
      'an iterable',
      () =>
        (async function* () {
          yield Buffer.from('a');
          await Promise.resolve();
        })(),
      401,
    ],
  ])('with the body %s', async (_, body, status) => {
    const s = scene((token) => (token > 1 ? ok() : refused()));
    expect(
      (await s.client.fetch('/orders', { method: 'POST', body: body() as NonNullable<RequestInit['body']> })).status,
    ).toBe(status);
    expect((await s.client.fetch('/orders')).status).toBe(200);
    expect(s.tokenRequests).toHaveLength(2);
  });

  it.each([
    [{ method: 'GET' }, 200],
    [{ method: 'POST', body: 'a' }, 401],
  ])('of a Request %j', async (init, status) => {
    const s = scene((token) => (token > 1 ? ok() : refused()));
    expect((await s.client.fetch(new Request(`${API}/orders`, { ...init, headers: { 'X-Till': '7' } }))).status).toBe(
      status,
    );
    expect(s.calls.every(({ headers }) => headers.get('x-till') === '7')).toBe(true);
  });

  it('that was redirected gets its 401', async () => {
    const s = scene(() => Object.defineProperty(refused(), 'redirected', { value: true }));
    expect((await s.client.fetch('/orders')).status).toBe(401);
    expect(s.tokenRequests).toHaveLength(1);
  });

  it.each([
    ['/orders', `${API}/orders`, 1],
    ['orders?limit=1', `${API}/orders?limit=1`, 1],
    ['/v1/orders', `${API}/orders`, 1],
    [`${API}/orders`, `${API}/orders`, 1],
    [API, API, 1],
    ['https://api.example.com/v1x', 'https://api.example.com/v1x', 0],
    ['https://api.example.com/v1/../admin', 'https://api.example.com/admin', 0],
    ['../admin', 'https://api.example.com/admin', 0],
    ['/%2e%2e/admin', 'https://api.example.com/admin', 0],
    ['//evil.example/v1', `${API}/evil.example/v1`, 1],
    ['\\\\evil.example/v1', `${API}/evil.example/v1`, 1],
    ['/http://evil.example/x', `${API}/http://evil.example/x`, 1],
    ['/v1/http://evil.example/x', `${API}/http://evil.example/x`, 1],
    ['/\t/evil.example/x', `${API}/evil.example/x`, 1],
    ['', `${API}/`, 1],
    ['/v1', `${API}/v1`, 1],
    ['http://api.example.com/v1/orders', 'http://api.example.com/v1/orders', 0],
    ['https://api.example.com:444/v1/orders', 'https://api.example.com:444/v1/orders', 0],
    ['https://api.example.com@evil.example/v1', 'https://api.example.com@evil.example/v1', 0],
  ])('of %s goes to %s, with the token: %i', async (input, url, token) => {
    const s = scene(ok);
    await s.client.fetch(input);
    expect(s.calls).toMatchObject([{ url, token }]);
  });

  it.each([
    ['https://api.example.com', '//evil.example/x', 'https://api.example.com/evil.example/x'],
    ['https://api.example.com/', '/orders', 'https://api.example.com/orders'],
    ['https://api.example.com/v1/?key=/7', 'orders', 'https://api.example.com/v1/orders'],
    ['https://api.example.com/v1?key=/7', '/v1/orders', 'https://api.example.com/v1/orders'],
  ])('below %s of %s goes to %s', async (baseUrl, input, url) => {
    const s = scene(ok, { baseUrl });
    await s.client.fetch(input);
    expect(s.calls).toMatchObject([{ url, token: 1 }]);
  });

  it.each([[{ Authorization: 'Bearer x' }], [new Headers({ authorization: '' })], [[['AUTHORIZATION', 'Basic x']]]])(
    'with an Authorization header of its own is a TypeError',
    async (headers) => {
      const s = scene(ok);
      await expect(s.client.fetch('/orders', { headers: headers as Headers })).rejects.toThrow(TypeError);
      expect([s.calls, s.tokenRequests]).toEqual([[], []]);
    },
  );

  it.each([
    ['1.5', 503],
    ['-1', 503],
    ['99999999999999999999', 503],
    ['Fri, 27 Nov 2026 10:00:02 GMT', 200],
  ])('reads Retry-After %s as RFC 9110 has it: %i', async (retryAfter, status) => {
    const headers = { 'Retry-After': retryAfter, Date: 'Fri, 27 Nov 2026 10:00:00 GMT' };
    const s = scene(() => (s.calls.length > 1 ? ok() : new Response('', { status: 503, headers })));
    expect((await s.client.fetch('/orders')).status).toBe(status);
    expect(s.sleeps).toEqual(status === 200 ? [2_000] : []);
  });

  it('sends the current token after Retry-After, also if the first one has expired', async () => {
    const s = scene((token) =>
      token > 1 ? ok() : new Response('', { status: 503, headers: { 'Retry-After': '30' } }),
    );
    s.token = (number) => Response.json({ access_token: `token-${number}`, expires_in: 20 });
    expect((await s.client.fetch('/orders')).status).toBe(200);
    expect(s.calls.map(({ token }) => token)).toEqual([1, 2]);
  });

  it('whose Request shows its body by bodyUsed alone is sent once', async () => {
    const s = scene((token) => (token > 1 ? ok() : refused()));
    const request = new Request(`${API}/orders`, { method: 'POST' });
    Object.defineProperties(request, { body: { value: undefined }, bodyUsed: { value: true } });
    expect((await s.client.fetch(request)).status).toBe(401);
    expect(s.calls).toHaveLength(1);
  });

  it('that cannot be sent again does not wait for the new token, and its failure is handled', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const s = scene(() => refused());
    const tokens = s.token;
    s.token = (number) => (number > 1 ? new Response('', { status: 503 }) : tokens(number));
    const body = new Blob(['a']).stream();
    expect((await s.client.fetch('/orders', { method: 'POST', body })).status).toBe(401);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect([s.tokenRequests.length, unhandled]).toEqual([2, []]);
  });

  it('whose signal has aborted before requests no token', async () => {
    const s = scene(ok);
    await expect(s.client.fetch('/orders', { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone');
    expect([s.calls, s.tokenRequests]).toEqual([[], []]);
  });

  it('cancels the body of a response that it does not return', async () => {
    const cancelled: number[] = [];
    const s = scene((token) => {
      if (token > 1) return ok();
      const body = new ReadableStream({ cancel: () => void cancelled.push(token) });
      return new Response(body, { status: 401, headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } });
    });
    await s.client.fetch('/orders');
    expect(cancelled).toEqual([1]);
  });

  it('ends while it waits when its signal aborts', async () => {
    const controller = new AbortController();
    const s = scene(() => new Response('', { status: 503, headers: { 'Retry-After': '30' } }), {
      sleep: () => new Promise(() => undefined),
    });
    const call = s.client.fetch('/orders', { signal: controller.signal });
    setImmediate(() => setImmediate(() => controller.abort(new Error('closing time'))));
    await expect(call).rejects.toThrow('closing time');
  });
});

it('knows every code of the gate for a token that is not valid, for pages that cannot read the challenge', async () => {
  const codes = Object.entries(REASONS).flatMap(([code, { error }]) => (error === 'invalid_token' ? [code] : []));
  expect(codes.length).toBeGreaterThan(15);
  const headers = { 'Content-Type': 'application/problem+json' };
  for (const code of [...codes, 'invalid_token']) {
    const s = scene(() => new Response(JSON.stringify({ code }), { status: 401, headers }));
    await s.client.fetch('/orders');
    expect([code, s.calls.length]).toEqual([code, 2]);
  }
});
