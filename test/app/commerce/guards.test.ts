import request from 'supertest';
import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { routes, SCOPES } from '../../../src/app/commerce/routes';
import type { Route } from '../../../src/app/commerce/routes';
import { commerceApp, concretePath, contract } from './commerce-app';

const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true })).addSchema(contract, 'contract');
const DETAIL = 'The access token lacks a scope that this resource requires.';
const named = routes().map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(named)('%s', (_name, route) => {
  it('answers 401 without a token', async () => {
    const { app } = commerceApp();
    const method = route.method.toLowerCase() as Lowercase<Route['method']>;
    const response = await request(app)[method](concretePath(route));
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="api"');
    expect(response.headers['x-placeholder']).toBeUndefined();
  });

  it('answers 403 with every scope but its own, and names that one', async () => {
    const others = SCOPES.filter((scope) => !route.scopes.includes(scope));
    const response = await commerceApp()
      .as(...others)
      .follow(route);
    expect(response.status).toBe(403);
    expect(response.headers['www-authenticate']).toBe(
      `Bearer realm="api", error="insufficient_scope", error_description="${DETAIL}", scope="${route.scopes.join(' ')}"`,
    );
    expect(response.body.required_scopes).toEqual(route.scopes);
    expect(response.body.code).toBe('insufficient_scope');
  });

  it('answers its 2xx, as openapi.yaml describes it, with exactly its scopes', async () => {
    const response = await commerceApp()
      .as(...route.scopes)
      .follow(route);
    const documented = documentedSuccess(route);
    expect({ status: response.status, body: response.body }).toMatchObject({ status: documented.status });
    expect(response.headers['x-placeholder']).toBe('true');
    if (documented.schema === undefined) {
      expect(response.text).toBe('');
    } else {
      const validate = ajv.compile({ $ref: `contract${documented.schema}` });
      validate(response.body);
      expect(validate.errors).toBeNull();
    }
  });
});

interface DocumentedAnswers {
  readonly responses: Readonly<
    Record<
      string,
      { readonly content?: { readonly 'application/json': { readonly schema: { readonly $ref: string } } } }
    >
  >;
}

/** The one 2xx that the contract names for a route. */
function documentedSuccess(route: Route): { status: number; schema: string | undefined } {
  const operation = contract.paths[route.path]?.[route.method.toLowerCase() as 'get'] as unknown as DocumentedAnswers;
  const [status, ...others] = Object.keys(operation.responses).filter((code) => code.startsWith('2'));
  expect(others).toEqual([]);
  return { status: Number(status), schema: operation.responses[status!]?.content?.['application/json'].schema.$ref };
}
