import express from 'express';
import type { Express, Router } from 'express';
import { authenticate } from '../../../src/gate/index';
import type { Gate, GateOptions } from '../../../src/gate/index';
import { auditRoutes, createTestIssuer } from '../../../src/testing';
import type { AuditRoutesOptions } from '../../../src/testing';

/** One release of Express or of its router: what makes apps, and what makes routers. */
export interface Flavour {
  readonly createApp: () => Express;
  readonly createRouter: () => Router;
}

/* eslint-disable @typescript-eslint/no-require-imports -- packages under another name, which have no types */
const express4 = require('express-4') as typeof express;
const olderRouter = require('router-2-2') as typeof express.Router;
/* eslint-enable @typescript-eslint/no-require-imports */

/** What users have: Express 5, Express 5 with a router that forgets the paths it is mounted at, Express 4. */
export const FLAVOURS: readonly (readonly [name: string, flavour: Flavour])[] = [
  ['Express 5', { createApp: express, createRouter: () => express.Router() }],
  ['Express 5 with router 2.2', { createApp: appOfOlderRouter, createRouter: () => olderRouter() }],
  ['Express 4', { createApp: express4, createRouter: () => express4.Router() }],
];

/** An app as Express 5 makes it, with the router that its first releases had. */
function appOfOlderRouter(): Express {
  const app = express();
  Object.defineProperty(app, 'router', { value: olderRouter() });
  return app;
}

export const done = (): void => {};
export const pass = (_req: unknown, _res: unknown, next: () => void): void => next();

const issuer = createTestIssuer();

/** A gate for routes that are read and not called. */
export function gate(options: Pick<GateOptions, 'optional' | 'resource'> = {}): Gate {
  return authenticate({ ...issuer.options, ...options });
}

/** Operations of a document: `{ 'GET /v1/orders': ['orders:read'], 'GET /livez': null }`; null is public. */
export type Operations = Readonly<Record<string, readonly string[] | null>>;

/** Makes a document of them; every scope that one of them names is declared, unless others are given. */
export function documentOf(operations: Operations, declared?: readonly string[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, scopes] of Object.entries(operations)) {
    const [method = '', path = ''] = name.split(' ');
    const security = scopes === null ? [] : [{ oauth2: scopes }];
    paths[path] = { ...paths[path], [method.toLowerCase()]: { security } };
  }
  const scopes = declared ?? Object.values(operations).flatMap((each) => each ?? []);
  const flow = { tokenUrl: 'https://login.test/token', scopes: Object.fromEntries(scopes.map((name) => [name, name])) };
  const oauth2 = { type: 'oauth2', flows: { clientCredentials: flow } };
  return { openapi: '3.1.0', paths, components: { securitySchemes: { oauth2 } } };
}

/** Findings without their texts: `unguarded-route GET /v1/orders`. */
export function audit(app: object, document: object, options?: AuditRoutesOptions): string[] {
  return auditRoutes(app, document, options).map(({ kind, method, path }) => `${kind} ${method} ${path}`);
}
