import request from 'supertest';
import type { Test } from 'supertest';
import { gateApp } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { NOW, NOW_MS, token } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';

const GOOD = token();

describe('token location: the body', () => {
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
});

describe('errors: the body', () => {
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
});

describe('errors: unexpected failures', () => {
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
