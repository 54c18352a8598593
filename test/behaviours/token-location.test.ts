import request from 'supertest';
import type { Test } from 'supertest';
import type { Reason } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

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

  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('accepts the scheme %s: it is case-insensitive', async (scheme) => {
    const through = gateApp();
    await through.get().set('Authorization', `${scheme} ${GOOD}`).expect(200);
  });

  const refused: readonly [string, string, Reason][] = [
    ['the scheme alone', 'Bearer', 'malformed_authorization'],
    ['the scheme and a blank', 'Bearer ', 'malformed_authorization'],
    ['two words', 'Bearer a b', 'malformed_authorization'],
    ['a good token and a word', `Bearer ${GOOD} b`, 'malformed_authorization'],
    ['a tab instead of the blank', `Bearer\t${GOOD}`, 'malformed_authorization'],
    ['a token in quotes', `Bearer "${GOOD}"`, 'malformed_authorization'],
    ['a token that starts with =', `Bearer =${GOOD}`, 'malformed_authorization'],
    ['an auth-param instead of a token', `Bearer access_token=${GOOD}`, 'malformed_authorization'],
    ['a bare token without a scheme', GOOD, 'missing_token'],
    ['Bearer joined with Bearer by a comma', `Bearer ${GOOD}, Bearer ${GOOD}`, 'malformed_authorization'],
    ['Bearer joined with Basic by a comma', `Bearer ${GOOD}, Basic YTpi`, 'malformed_authorization'],
    ['Basic joined with Bearer by a comma', `Basic YTpi, Bearer ${GOOD}`, 'malformed_authorization'],
    ['Basic joined with Bearer without a blank', `Basic YTpi,bearer ${GOOD}`, 'malformed_authorization'],
    ['the other scheme Bearerx', `Bearerx ${GOOD}`, 'missing_token'],
    ['the other scheme xBearer', `xBearer ${GOOD}`, 'missing_token'],
    ['Basic', 'Basic cG9zLTE3OnNlY3JldA==', 'missing_token'],
    ['Digest', 'Digest username="pos-17", realm="api", nonce="1", response="2"', 'missing_token'],
    ['DPoP (RFC 9449)', `DPoP ${GOOD}`, 'missing_token'],
  ];
  it.each(refused)('refuses %s', async (_what, header, reason) => {
    const through = gateApp();
    expectRefusal(await through.get().set('Authorization', header), reason, through);
  });

  it.each(['Cookie', 'Proxy-Authorization', 'X-Forwarded-Authorization', 'X-Authorization', 'X-Access-Token'])(
    'ignores %s',
    async (name) => {
      const through = gateApp();
      const value = name === 'Cookie' ? `access_token=${GOOD}; Authorization=Bearer ${GOOD}` : `Bearer ${GOOD}`;
      expectRefusal(await through.get().set(name, value), 'missing_token', through);
    },
  );

  it('has no CORS handling: a preflight without a token is a request without a token', async () => {
    const through = gateApp();
    const preflight = request(through.app).options('/v1/orders').set('Origin', 'https://shop.test');
    const response = await preflight
      .set('Access-Control-Request-Method', 'GET')
      .set('Access-Control-Request-Headers', 'authorization');
    expectRefusal(response, 'missing_token', through);
  });
});

describe('token location: query and body', () => {
  const header = (test: Test): Test => test.set('Authorization', `Bearer ${GOOD}`);
  const query: readonly [string, string][] = [
    ['as access_token', `access_token=${GOOD}`],
    ['as an empty access_token', 'access_token='],
    ['as access_token without a value', 'access_token'],
    ['after another parameter', `limit=1&access_token=${GOOD}`],
    ['as an array', `access_token[]=${GOOD}`],
    ['as an array with an index', `access_token[0]=${GOOD}`],
    ['as an object', `access_token[x]=${GOOD}`],
    ['twice', `access_token=${GOOD}&access_token=${GOOD}`],
    ['with a percent-encoded name', `%61ccess%5Ftoken=${GOOD}`],
    ['with percent-encoded brackets', `access_token%5B%5D=${GOOD}`],
    ['with its name in brackets, as qs reads it', `[access_token]=${GOOD}`],
  ];
  it.each(query)(
    'refuses a token in the query %s, with and without a header (RFC 9700 section 4.3.2)',
    async (_how, text) => {
      for (const send of [(test: Test) => test, header]) {
        const through = gateApp();
        expectRefusal(await send(through.get(undefined, `/v1/orders?${text}`)), 'token_in_query', through);
      }
    },
  );

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

  it('refuses a token in a form body whose content type has parameters and capitals', async () => {
    const through = gateApp();
    const sent = through.post().set('Content-Type', 'Application/X-WWW-Form-Urlencoded; charset=utf-8');
    expectRefusal(await sent.send(`access_token=${GOOD}`), 'token_in_body', through);
  });

  it('refuses one token in the body and another in the query', async () => {
    const through = gateApp();
    const sent = through.post(undefined, `/v1/orders?access_token=${GOOD}`).type(FORM).send(`access_token=${GOOD}`);
    expectRefusal(await sent, 'token_in_query', through);
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
