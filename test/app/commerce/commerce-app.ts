import express from 'express';
import type { Express } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { authenticate, problemHandler } from '../../../src/gate';
import { commerceRouter } from '../../../src/app/commerce/router';
import { loadContract } from '../../../src/app/contract';
import type { ContractDocument, LocatedOperation } from '../../../src/testing/openapi/document';
import { allOperations } from '../../../src/testing/openapi/document';
import { firstIdOf } from '../contract/first-ids';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

/** openapi.yaml, as a document reader of any API sees it. */
export const document = loadContract() as unknown as ContractDocument;

/** The operations of the commerce resources. */
export const routes: readonly LocatedOperation[] = allOperations(document).filter(({ path }) =>
  path.startsWith('/v1/'),
);

/** The name of an operation in openapi.yaml: `createOrder`. */
export function idOf({ operation }: LocatedOperation): string {
  return String(operation.operationId);
}

/** The scopes that an operation requires. */
export function scopesOf({ security }: LocatedOperation): readonly string[] {
  return security[0] ?? [];
}

/** A caller with these scopes. */
export interface Caller {
  get(path: string): Test;
  post(path: string, body?: object): Test;
  patch(path: string, body: object): Test;
  delete(path: string): Test;
  /** Any method, with the body that openapi.yaml gives as the example, and the id of the first sample row. */
  follow(route: LocatedOperation): Test;
}

/** The commerce API after a real gate, as the scaffold mounts it. */
export function commerceApp(): { app: Express; as(...scopes: string[]): Caller } {
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
    commerceRouter(loadContract(), () => NOW_MS),
  );
  app.use((_req, _res, next) => next({ status: 404 }));
  app.use(problemHandler({ logger }));
  return { app, as: (...scopes) => caller(app, scopes) };
}

/** The example that openapi.yaml gives for the body of an operation. */
export function exampleOf({ operation }: LocatedOperation): object | undefined {
  const media = operation.requestBody?.content['application/json'] as { example: object } | undefined;
  return media?.example;
}

/** The path of an operation, with the id of the first row of its sample. */
export function concretePath({ path }: LocatedOperation): string {
  return path.replace('{id}', firstIdOf(path.split('/')[2] ?? ''));
}

/** One operation of openapi.yaml. */
export function routeOf(operationId: string): LocatedOperation {
  const route = routes.find((one) => idOf(one) === operationId);
  if (!route) throw new Error(`openapi.yaml has no operation ${operationId}`);
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
    follow: (route) => send(route.method.toLowerCase() as 'get', concretePath(route), exampleOf(route)),
  };
}
