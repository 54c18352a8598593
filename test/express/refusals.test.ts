import request from 'supertest';
import { AuthError } from '../../src';
import type { GateRequest } from '../../src/express/http';
import { refusalSender } from '../../src/express/refusals';
import { sendRefusal } from '../../src/express/respond';

const PRESENTATION = { realm: 'shop', exposeReasons: true, resourceMetadata: 'https://api.test/metadata' };

/** What a caller gets for each refusal, one after the other; `id` is the request's. */
async function answers(errors: readonly AuthError[], id?: string) {
  const send = refusalSender(PRESENTATION);
  const got = [];
  for (const error of errors) {
    got.push(await answerOf((req, res) => send(Object.assign(req, { id }), res, error)));
  }
  return got;
}

/** What a caller gets where nothing is made once. */
function answerAlone(error: AuthError, id?: string) {
  return answerOf((req, res) => sendRefusal(Object.assign(req, { id }), res, error.presentedAs(PRESENTATION)));
}

async function answerOf(handler: (req: GateRequest, res: Parameters<typeof sendRefusal>[1]) => void) {
  const { status, text, headers } = await request(handler).get('/');
  const { date, ...rest } = headers as Record<string, string>;
  expect(date).toBeDefined();
  return { status, headers: rest, text };
}

const insufficient = (requiredScopes: readonly string[]): AuthError =>
  new AuthError('insufficient_scope', { requiredScopes });

describe('refusalSender()', () => {
  it.each<[string, () => AuthError]>([
    ['without scopes', () => new AuthError('expired')],
    ['with scopes', () => insufficient(Object.freeze(['orders:read', 'orders:write']))],
    ['of an outage', () => new AuthError('keys_unavailable', { retryAfterSeconds: 7 })],
  ])('answers a refusal %s the second time as the first, with and without an id', async (_which, make) => {
    const error = make();
    expect(await answers([error, error])).toEqual([await answerAlone(error), await answerAlone(error)]);
    const withId = await answerAlone(error, 'request-7 \u00e9');
    expect(await answers([error, error], 'request-7 \u00e9')).toEqual([withId, withId]);
    expect(JSON.parse(withId.text)).toMatchObject({ request_id: 'request-7 \u00e9' });
  });

  it('tells refusals apart by reason, scopes and time to wait', async () => {
    const scopes = Object.freeze(['orders:read']);
    const errors = [
      new AuthError('expired'),
      new AuthError('superseded'),
      insufficient(scopes),
      insufficient(Object.freeze(['items:read'])),
      new AuthError('expired', { requiredScopes: scopes }),
      insufficient(scopes),
      new AuthError('keys_unavailable', { retryAfterSeconds: 7 }),
      new AuthError('keys_unavailable', { retryAfterSeconds: 8 }),
    ];
    expect(await answers(errors)).toEqual(await Promise.all(errors.map((error) => answerAlone(error))));
  });

  it('goes by what a list of scopes says now, where it can change', async () => {
    const scopes = ['orders:read'];
    const send = refusalSender(PRESENTATION);
    const challenge = async (): Promise<string | undefined> =>
      (await answerOf((req, res) => send(req, res, insufficient(scopes)))).headers['www-authenticate'];
    expect(await challenge()).toContain('scope="orders:read"');
    scopes.push('orders:write');
    expect(await challenge()).toContain('scope="orders:read orders:write"');
  });
});
