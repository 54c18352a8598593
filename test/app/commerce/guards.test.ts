import request from 'supertest';
import { routes, SCOPES } from '../../../src/app/commerce/resources';
import type { Route } from '../../../src/app/commerce/resources';
import { commerceApp, concretePath, routeOf } from './commerce-app';

const DETAIL = 'The access token lacks a scope that this resource requires.';

// Status, challenge, code and schema of every route: test/contract.
describe('the guard of a placeholder', () => {
  it('names the scope that is missing, in the challenge and in the body', async () => {
    const route = routeOf('cancelOrder');
    const others = SCOPES.filter((scope) => !route.scopes.includes(scope));
    const response = await commerceApp()
      .as(...others)
      .follow(route);
    expect(response.status).toBe(403);
    expect(response.headers['www-authenticate']).toBe(
      `Bearer realm="api", error="insufficient_scope", error_description="${DETAIL}", scope="orders:cancel"`,
    );
    expect(response.body.required_scopes).toEqual(['orders:cancel']);
  });
});

describe('X-Placeholder', () => {
  const named = routes().map((route) => [`${route.method} ${route.path}`, route] as const);
  const scene = commerceApp();

  it.each(named)('is in the response to %s, and in no refusal', async (_name, route) => {
    const method = route.method.toLowerCase() as Lowercase<Route['method']>;
    const refused = await request(scene.app)[method](concretePath(route));
    expect(refused.headers['x-placeholder']).toBeUndefined();
    const response = await scene.as(...route.scopes).follow(route);
    expect(response.headers['x-placeholder']).toBe('true');
  });
});
