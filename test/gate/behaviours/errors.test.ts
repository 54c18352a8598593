import type { Test } from 'supertest';
import { gateApp } from '../../support/gate-app';
import { NOW, NOW_MS, token } from '../../support/issuer';

const GOOD = token();
const EXPIRED = token({ claims: { exp: NOW - 60 } });

describe('token location: any body goes with a good header, as data', () => {
  it.each<[string, (test: Test) => Test, unknown]>([
    ['a member access_token', (test) => test.send({ access_token: GOOD }), { access_token: GOOD }],
    ['an array', (test) => test.send([1, 2]), [1, 2]],
    ['a text', (test) => test.type('text/plain').send('two coffees'), 'two coffees'],
    ['a number', (test) => test.type('application/json').send('17'), 17],
    ['null', (test) => test.type('application/json').send('null'), null],
    ['no body', (test) => test, null],
    ['an empty JSON object', (test) => test.send({}), {}],
  ])('%s', async (_what, fill, seen) => {
    const response = await fill(gateApp().post(GOOD)).expect(200);
    expect(response.body.body).toEqual(seen);
  });
});

describe('errors: the body', () => {
  it.each<[string, string | undefined, string, number]>([
    ['expired', EXPIRED, 'Invalid access token', 401],
    ['missing_token', undefined, 'Access token required', 401],
    ['insufficient_scope', token({ claims: { scope: 'x' } }), 'Insufficient scope', 403],
  ])(
    'has a title of its own where %s has a page, else the phrase of the status (RFC 9457 section 4.2.1)',
    async (code, raw, title, status) => {
      const problemTypes = 'https://api.test/problems/';
      const ofPage = await gateApp({ problemTypes }).get(raw);
      expect(ofPage.body).toMatchObject({ type: problemTypes + code, title, status });
      const blank = await gateApp().get(raw);
      const phrase = status === 401 ? 'Unauthorized' : 'Forbidden';
      expect(blank.body).toMatchObject({ type: 'about:blank', title: phrase, status });
    },
  );

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
  it('responds with 500, not 401, when the verification itself throws', async () => {
    let calls = 0;
    const clock = (): number => {
      if (calls++ > 0) throw new Error('the clock is broken');
      return NOW_MS;
    };
    const through = gateApp({ clock });
    for (let use = 0; use < 2; use++) {
      const { status, headers, body } = await through.get(GOOD);
      expect([status, headers['www-authenticate'], body.code]).toEqual([500, undefined, 'internal_error']);
    }
    expect(through.reached).toEqual([]);
    expect(through.log.at('error')).toHaveLength(2);
  });
});
