import request from 'supertest';
import type { Test } from 'supertest';
import express from 'express';
import { authenticate, AuthError, requireScope } from '../../../src/gate';
import { gateApp } from '../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../support/gate-app';
import { token, AUDIENCE, ISSUER, NOW, NOW_MS } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

const GOOD = token();
const FORM = 'application/x-www-form-urlencoded';

describe('token location: the Authorization header', () => {
  it('accepts a good token and passes req.auth to the handler', async () => {
    const through = gateApp();
    const response = await through.get(GOOD).expect(200);
    expect(response.body.auth).toMatchObject({ clientId: 'pos-17', scopes: ['orders:read', 'orders:write'] });
    expect(through.reached).toEqual(['GET /v1/orders']);
    expect(through.log.entries).toEqual([]);
  });

  it('responds to a request without a token with a challenge that names no error (RFC 6750 section 3.1)', async () => {
    const through = gateApp();
    const response = await through.get();
    expect(response.headers['www-authenticate']).toBe('Bearer realm="api"');
    expectRefusal(response, 'missing_token', through);
  });
});

describe('token location: query and body', () => {
  const header = (test: Test): Test => test.set('Authorization', `Bearer ${GOOD}`);
  const form: readonly [string, string][] = [
    ['as access_token', `access_token=${GOOD}`],
    ['as an array', `access_token[]=${GOOD}`],
    ['as an object', `access_token[x]=${GOOD}`],
    ['with its name in brackets, as qs reads it', `[access_token]=${GOOD}`],
    ['empty', 'access_token='],
  ];
  it.each(form)('refuses a token in a form body %s, with and without a header', async (_how, text) => {
    for (const send of [(test: Test) => test, header]) {
      const through = gateApp();
      expectRefusal(await send(through.post()).type(FORM).send(text), 'token_in_body', through);
    }
  });

  it('does not take parameters with similar names for a token', async () => {
    const through = gateApp();
    await through.get(GOOD, '/v1/orders?my_access_token=1&access_tokens=2&q=access_token&%61=1').expect(200);
    await through.post(GOOD).type(FORM).send('access_tokens=1&note=access_token').expect(200);
  });

  it.each([
    ['a string', { access_token: GOOD }],
    ['an array', { access_token: [GOOD] }],
    ['an object', { access_token: { a: GOOD } }],
  ])('treats a member access_token of a JSON body as data: %s', async (_what, body) => {
    const withHeader = gateApp();
    const response = await withHeader.post(GOOD).send(body).expect(200);
    expect(response.body.body).toEqual(body);
    const without = gateApp();
    expectRefusal(await without.post().send(body), 'missing_token', without);
  });
});

describe('token location: any body goes with a good header', () => {
  const bodies: readonly [string, (test: Test) => Test, unknown][] = [
    ['an array', (test) => test.send([1, 2]), [1, 2]],
    ['a text', (test) => test.type('text/plain').send('two coffees'), 'two coffees'],
    ['a number', (test) => test.type('application/json').send('17'), 17],
    ['null', (test) => test.type('application/json').send('null'), null],
    ['no body', (test) => test, null],
    ['an empty JSON object', (test) => test.send({}), {}],
  ];
  const methods: readonly ['post' | 'patch', (through: GateApp) => Test][] = [
    ['post', (through) => through.post(GOOD)],
    ['patch', (through) => request(through.app).patch('/v1/orders').set('Authorization', `Bearer ${GOOD}`)],
  ];
  const rows = methods.flatMap(([name, start]) =>
    bodies.map(([what, fill, seen]) => ({ name, start, what, fill, seen })),
  );
  it.each(rows)('accepts $what on $name', async ({ start, fill, seen }) => {
    const response = await fill(start(gateApp())).expect(200);
    expect(response.body.body).toEqual(seen);
  });
});

const EXPIRED = token({ claims: { exp: NOW - 60 } });

describe('errors: the challenge', () => {
  it('names the configured realm', async () => {
    const through = gateApp({ realm: 'Commerce API' });
    expectRefusal(await through.get(), 'missing_token', through, { realm: 'Commerce API' });
    expectRefusal(await through.get(EXPIRED), 'expired', through, { realm: 'Commerce API' });
  });

  it.each([
    ['quotes and backslashes', 'a "b" \\c', 'a \\"b\\" \\\\c'],
    ['CR LF', 'a\r\nSet-Cookie: x=1', 'a??Set-Cookie: x=1'],
    ['letters beyond ASCII', 'Grüße 🔑', 'Gr??e ?'],
  ])('stays well-formed with %s in the realm', async (_what, realm, written) => {
    const through = gateApp({ realm });
    const response = await through.get();
    expectRefusal(response, 'missing_token', through, { realm: written });
    expect(response.headers['set-cookie']).toBeUndefined();
  });

  it.each([
    ['https://api.test', 'https://api.test/.well-known/oauth-protected-resource'],
    ['https://api.test/', 'https://api.test/.well-known/oauth-protected-resource'],
    ['https://api.test/shop', 'https://api.test/.well-known/oauth-protected-resource/shop'],
  ])('points to the metadata of the resource %s (RFC 9728 section 5.1)', async (resource, resourceMetadata) => {
    const through = gateApp({ resource });
    expectRefusal(await through.get(), 'missing_token', through, { resourceMetadata });
    const forbidden = await through.get(token({ claims: { scope: '' } }));
    expectRefusal(forbidden, 'insufficient_scope', through, { resourceMetadata, scopes: ['orders:read'] });
  });
});

describe('errors: the body', () => {
  it('contains the request id that an earlier middleware has set', async () => {
    const reached: string[] = [];
    const log = recordingLogger();
    const gate = authenticate({
      issuer: ISSUER,
      audience: AUDIENCE,
      keys: jwks(testKey()),
      clock: () => NOW_MS,
      logger: log,
    });
    const app = express().use((req, _res, next) => {
      Object.assign(req, { id: 'req-17' });
      next();
    }, gate);
    const response = await request(app).get('/').set('Authorization', `Bearer ${EXPIRED}`);
    expectRefusal(response, 'expired', { reached, presented: [`Bearer ${EXPIRED}`], log }, { requestId: 'req-17' });
    expect(log.entries[0]?.fields['requestId']).toBe('req-17');
  });

  it.each<[string, string, string, number]>([
    ['expired', EXPIRED, 'Invalid access token', 401],
    ['missing_token', '', 'Access token required', 401],
    ['insufficient_scope', token({ claims: { scope: 'x' } }), 'Insufficient scope', 403],
  ])(
    'has a title of its own where %s has a page, else the phrase of the status (RFC 9457 section 4.2.1)',
    async (code, raw, title, status) => {
      const problemTypes = 'https://api.test/problems/';
      const ofPage = await gateApp({ problemTypes }).get(raw === '' ? undefined : raw);
      expect(ofPage.body).toMatchObject({ type: problemTypes + code, title, status });
      const blank = await gateApp().get(raw === '' ? undefined : raw);
      expect(blank.body).toMatchObject({
        type: 'about:blank',
        title: status === 401 ? 'Unauthorized' : 'Forbidden',
        status,
      });
    },
  );

  it('says only invalid_token in production, in header and body; the log has the reason', async () => {
    const through = gateApp({ exposeReasons: false });
    const response = await through.get(EXPIRED);
    const detail = 'The access token is not valid.';
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toBe(
      `Bearer realm="api", error="invalid_token", error_description="${detail}"`,
    );
    expect(response.body).toEqual({
      type: 'about:blank',
      title: 'Unauthorized',
      status: 401,
      detail,
      code: 'invalid_token',
    });
    expect(through.reached).toEqual([]);
    expect(through.log.entries[0]?.fields['reason']).toBe('expired');
    expect(through.decisions[0]).toMatchObject({ outcome: 'refused', reason: 'expired', status: 401 });
  });

  it('is opaque by default when NODE_ENV is production', async () => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      const response = await gateApp().get(EXPIRED);
      expect(response.body.code).toBe('invalid_token');
    } finally {
      process.env['NODE_ENV'] = before;
    }
  });

  it('never shows private details', async () => {
    const through = gateApp();
    const response = await through.get(token({ claims: { client_id: '' } }));
    expectRefusal(response, 'invalid_claims', through);
    expect(through.log.entries[0]?.fields['detail']).toBe('the client id is empty');
    expect(response.text).not.toContain('client id is empty');
  });
});

describe('errors: decisions and the log', () => {
  it('passes everything but the token to onDecision', async () => {
    const through = gateApp();
    await through.get(token(), '/v1/orders?limit=1').expect(200);
    await through.get(EXPIRED, '/v1/orders?limit=1').expect(401);
    const [accepted, refused] = through.decisions;
    expect(accepted).toMatchObject({
      outcome: 'authenticated',
      method: 'GET',
      path: '/v1/orders',
      auth: { clientId: 'pos-17' },
    });
    expect(refused).toMatchObject({
      outcome: 'refused',
      reason: 'expired',
      status: 401,
      method: 'GET',
      path: '/v1/orders',
    });
    expect(refused?.error).toBeInstanceOf(AuthError);
    const output = JSON.stringify(through.decisions);
    expect([token(), EXPIRED].flatMap((raw) => raw.split('.')).filter((part) => output.includes(part))).toEqual([]);
  });

  it('keeps the query out of the log, with and without a token', async () => {
    const through = gateApp();
    await through.get(undefined, `/v1/orders?access_token=${token()}`).expect(400);
    expect(through.log.entries[0]?.fields['path']).toBe('/v1/orders');
  });

  it.each([
    ['accepted', token(), 200],
    ['refused', EXPIRED, 401],
  ])('does not let a throwing onDecision change the response to a token that is %s', async (_what, raw, status) => {
    const onDecision = (): never => {
      throw new Error('the observer is broken');
    };
    const through = gateApp({ onDecision });
    await through.get(raw).expect(status);
    expect(through.log.at('error')).toEqual([
      { level: 'error', fields: { error: 'the observer is broken' }, message: 'onDecision failed' },
    ]);
  });
});

describe('errors: unexpected failures', () => {
  const broken: GateAppOptions['routes'] = (app) => {
    app.get('/v1/orders', requireScope('orders:read'), () => {
      throw new Error('connect ECONNREFUSED postgres://user:password@db');
    });
  };

  it('responds to a throwing handler with 500 without message, stack and challenge, and logs it', async () => {
    const through = gateApp({ routes: broken });
    const response = await through.get(token());
    expect(response.status).toBe(500);
    expect(response.headers['www-authenticate']).toBeUndefined();
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toEqual({
      type: 'about:blank',
      title: 'Internal Server Error',
      status: 500,
      detail: 'The request could not be processed.',
      code: 'internal_error',
    });
    expect(through.log.at('error')[0]?.fields['error']).toMatch(/^Error: connect ECONNREFUSED.*\n\s+at /s);
  });

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a logger whose methods return promises fits the type
  it.each<[string, () => any]>([
    ['rejects', () => Promise.reject(new Error('the disk of the log is full'))],
    [
      'throws',
      () => {
        throw new Error('the disk of the log is full');
      },
    ],
  ])('responds as it has decided when the logger %s, and the console says so once', async (_what, broken) => {
    const said = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    const through = gateApp({ logger: { info: broken, warn: broken, error: broken } });
    for (const [raw, code] of [
      [undefined, 'missing_token'],
      [EXPIRED, 'expired'],
    ] as const) {
      const response = await through.get(raw);
      expect([response.status, response.body.code]).toEqual([401, code]);
    }
    expect(through.reached).toEqual([]);
    await through.get(token()).expect(200);
    expect(said.mock.calls).toEqual([[expect.stringContaining('tillgate: the logger failed')]]);
    said.mockRestore();
  });

  it('responds with 500, not 401, when the verification itself throws', async () => {
    let calls = 0;
    const clock = (): number => {
      if (calls++ > 0) throw new Error('the clock is broken');
      return NOW_MS;
    };
    const through = gateApp({ clock });
    const response = await through.get(token());
    const again = await through.get(token());
    for (const { status, headers, body } of [response, again]) {
      expect([status, headers['www-authenticate'], body.code]).toEqual([500, undefined, 'internal_error']);
    }
    expect(through.reached).toEqual([]);
    expect(through.log.at('error')).toHaveLength(2);
  });
});
