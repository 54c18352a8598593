import type { ServerResponse } from 'node:http';
import request from 'supertest';
import { AuthError, requireScope } from '../../src';
import type { GateRequest } from '../../src/express/request-state';
import { presentError, refusalSender, sendRefusal } from '../../src/express/respond';
import { gateApp } from '../support/gate-app';
import { token } from '../support/issuer';

const PRESENTATION = { realm: 'shop', exposeReasons: true, resourceMetadata: 'https://api.test/metadata' };

async function responseOf(handler: (req: GateRequest, res: ServerResponse) => void) {
  const { status, text, headers } = await request(handler).get('/');
  const { date, ...rest } = headers as Record<string, string>;
  expect(date).toBeDefined();
  return { status, headers: rest, text };
}

/** Responses of one gate to refusals in turn; `id` is the request's. */
async function prepared(errors: readonly AuthError[], id?: string) {
  const send = refusalSender(PRESENTATION);
  const got = [];
  for (const error of errors) got.push(await responseOf((req, res) => send(Object.assign(req, { id }), res, error)));
  return got;
}

/** The response to a refusal where nothing is prepared. */
function fresh(error: AuthError, id?: string) {
  return responseOf((req, res) => {
    sendRefusal(Object.assign(req, { id }), res, presentError(error, PRESENTATION, req));
  });
}

const insufficient = (requiredScopes: readonly string[]): AuthError =>
  new AuthError('insufficient_scope', { requiredScopes });

describe('refusalSender()', () => {
  it.each<[string, () => AuthError]>([
    ['without scopes', () => new AuthError('expired')],
    ['with scopes', () => insufficient(Object.freeze(['orders:read', 'orders:write']))],
    ['of too many unknown keys', () => new AuthError('too_many_unknown_keys', { retryAfterSeconds: 7 })],
    ['of an outage', () => new AuthError('keys_unavailable', { retryAfterSeconds: 7 })],
  ])('sends a refusal %s the second time byte for byte as the first, with and without an id', async (_which, make) => {
    const error = make();
    const expected = await fresh(error);
    expect(await prepared([error, error])).toEqual([expected, expected]);
    const withId = await fresh(error, 'request-7 \u00e9');
    expect(await prepared([error, error], 'request-7 \u00e9')).toEqual([withId, withId]);
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
      new AuthError('insufficient_scope'),
      new AuthError('keys_unavailable', { retryAfterSeconds: 7 }),
      new AuthError('keys_unavailable', { retryAfterSeconds: 8 }),
      new AuthError('too_many_unknown_keys', { retryAfterSeconds: 7 }),
      new AuthError('too_many_unknown_keys', { retryAfterSeconds: 8 }),
    ];
    expect(await prepared(errors)).toEqual(await Promise.all(errors.map((error) => fresh(error))));
  });

  it('reads a list of scopes anew each time where it can change', async () => {
    const scopes = ['orders:read'];
    const send = refusalSender(PRESENTATION);
    const challenge = async (): Promise<string | undefined> =>
      (await responseOf((req, res) => send(req, res, insufficient(scopes)))).headers['www-authenticate'];
    expect(await challenge()).toContain('scope="orders:read"');
    scopes.push('orders:write');
    expect(await challenge()).toContain('scope="orders:read orders:write"');
  });
});

it.each<[string, (scopes: string[]) => ReturnType<typeof requireScope>]>([
  ['as a list', (scopes) => requireScope(scopes)],
  ['as anyOf', (scopes) => requireScope({ anyOf: scopes })],
])('a guard does not follow a list of scopes that changes later, given %s', async (_how, makeGuard) => {
  const scopes = ['orders:write'];
  const guard = makeGuard(scopes);
  const through = gateApp({ routes: (app, reach) => void app.get('/v1/orders', guard, reach) });
  const refused = async () => {
    const { status, headers } = await through.get(token({ claims: { scope: 'orders:read' } }));
    return [status, /scope="([^"]*)"/.exec(headers['www-authenticate'] ?? '')?.[1]];
  };
  expect(await refused()).toEqual([403, 'orders:write']);
  scopes[0] = 'orders:read';
  expect(await refused()).toEqual([403, 'orders:write']);
  scopes.length = 0;
  expect(await refused()).toEqual([403, 'orders:write']);
});
