import express from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../src/index';
import { createTestIssuer, expectChallenge, expectProblem } from '../../src/testing/index';

const now = Date.parse('2026-05-01T12:00:00Z');
const issuer = createTestIssuer({ clock: () => now });
const app = express();
app.use(authenticate({ ...issuer.options, exposeReasons: true }));
app.get('/orders', requireScope('orders:read'), (req, res) => void res.json({ clientId: req.auth?.clientId }));

const call = (token: string): request.Test => request(app).get('/orders').set('Authorization', `Bearer ${token}`);

describe('createTestIssuer()', () => {
  it('makes tokens that its gate accepts', async () => {
    const answer = await call(issuer.token({ scope: 'orders:read', clientId: 'till-1' }));
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ clientId: 'till-1' });
  });

  it.each([
    ['expired', { expired: true }, 401, 'expired', { error: 'invalid_token' }],
    ['without a claim', { claims: { jti: undefined } }, 401, 'invalid_claims', { error: 'invalid_token' }],
    ['of another type', { header: { typ: 'JWT' } }, 401, 'wrong_type', { error: 'invalid_token' }],
    ['without the scope', {}, 403, 'insufficient_scope', { error: 'insufficient_scope', scope: 'orders:read' }],
  ])('makes tokens that are refused: %s', async (_name, token, status, code, challenge) => {
    const answer = await call(issuer.token({ ...(status === 401 && { scope: 'orders:read' }), ...token }));
    expectProblem(answer, { status, code });
    expectChallenge(answer, challenge);
  });

  it('supersedes the tokens of a client whose generation was bumped', async () => {
    const before = issuer.token({ scope: 'orders:read', clientId: 'till-2' });
    expect((await call(before)).status).toBe(200);
    issuer.bump('till-2');
    expect((await call(issuer.token({ scope: 'orders:read', clientId: 'till-2' }))).status).toBe(200);
    expectProblem(await call(before), { status: 401, code: 'superseded' });
  });
});

describe('expectChallenge() and expectProblem()', () => {
  const answer = {
    status: 401,
    headers: {
      'www-authenticate': 'Bearer realm="a \\"b\\"", error="invalid_token"',
      'content-type': 'application/problem+json; charset=utf-8',
    },
    body: { status: 401, code: 'expired' },
  };

  it('read quoted strings', () => expectChallenge(answer, { realm: 'a "b"', error: 'invalid_token' }));

  it.each([
    ['another error', () => expectChallenge(answer, { error: 'invalid_request' })],
    ['an error where none is expected', () => expectChallenge(answer, {})],
    ['no challenge at all', () => expectChallenge({ ...answer, headers: {} }, { error: 'invalid_token' })],
    ['another code', () => expectProblem(answer, { status: 401, code: 'superseded' })],
    ['a body that disagrees', () => expectProblem({ ...answer, status: 403 }, { status: 403, code: 'expired' })],
    ['another media type', () => expectProblem({ ...answer, headers: {} }, { status: 401, code: 'expired' })],
  ])('fail for %s', (_name, expectation) => expect(expectation).toThrow());
});
