import express from 'express';
import type { Express, RequestHandler } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { authenticate, problemHandler } from '../../../src/gate';
import { commerceRouter } from '../../../src/app/commerce/router';
import { RESOURCES, routes } from '../../../src/app/commerce/resources';
import type { Route } from '../../../src/app/commerce/resources';
import { requestValidation } from '../../../src/app/request-validation';
import { loadContract } from '../../../src/testing/openapi/document';
import { firstIdOf } from '../contract/first-ids';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

/** The contract, loaded once per test file. */
export const contract = loadContract();
const validation = requestValidation(contract);

/** A caller with these scopes. */
export interface Caller {
  get(path: string): Test;
  post(path: string, body?: object): Test;
  patch(path: string, body: object): Test;
  delete(path: string): Test;
  /** Any method, with the body that openapi.yaml gives as the example, and the id of the first sample row. */
  follow(route: Route): Test;
}

/** The commerce API after a real gate, as the scaffold mounts it; `validate` in place of the validation by openapi.yaml. */
export function commerceApp(
  routers: Parameters<typeof commerceRouter>[0] = {},
  validate: RequestHandler = validation,
): {
  app: Express;
  as(...scopes: string[]): Caller;
} {
  const logger = recordingLogger();
  const gate = authenticate({
    issuer: ISSUER,
    audience: AUDIENCE,
    keys: jwks(testKey()),
    clock: () => NOW_MS,
    unguarded: 'refuse',
    logger,
  });
  const app = express();
  app.use(
    '/v1',
    gate,
    validate,
    commerceRouter(routers, RESOURCES, () => NOW_MS),
  );
  app.use(problemHandler({ logger }));
  return { app, as: (...scopes) => caller(app, scopes) };
}

/** The example that openapi.yaml gives for the body of a route. */
export function exampleOf(route: Route): object | undefined {
  const operation = contract.paths[route.path]?.[route.method.toLowerCase() as 'post'];
  const media = operation?.requestBody?.content['application/json'] as { example: object } | undefined;
  return media?.example;
}

/** The path of a route, with the id of the first row of its sample. */
export function concretePath(route: Route): string {
  return route.path.replace('{id}', firstIdOf(route.resource));
}

/** One route of the table. */
export function routeOf(operationId: string): Route {
  const route = routes().find((candidate) => candidate.operationId === operationId);
  if (!route) throw new Error(`no route has the operationId ${operationId}`);
  return route;
}

function caller(app: Express, scopes: readonly string[]): Caller {
  const authorization = `Bearer ${token({ claims: { scope: scopes.join(' ') } })}`;
  const send = (method: 'get' | 'post' | 'patch' | 'delete', path: string, body?: object): Test => {
    const test = request(app)[method](path).set('Authorization', authorization);
    return body === undefined ? test : test.send(body);
  };
  return {
    get: (path) => send('get', path),
    post: (path, body) => send('post', path, body),
    patch: (path, body) => send('patch', path, body),
    delete: (path) => send('delete', path),
    follow: (route) =>
      send(route.method.toLowerCase() as Lowercase<Route['method']>, concretePath(route), exampleOf(route)),
  };
}
