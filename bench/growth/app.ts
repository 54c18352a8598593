import type { RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import express from 'express';
import type { GenerationSource } from '../../src/generation';
import type * as Generations from '../../src/generation';
import type * as Library from '../../src';
import type * as Testing from '../../src/testing';

// What users install, not what a loader makes of the source.
const load = createRequire(join(__dirname, '../../dist/index.js'));
const { authenticate, requireScope } = load('./index.js') as typeof Library;
const { createTestIssuer } = load('./testing/index.js') as typeof Testing;
const { memoryGenerations } = load('./generation/index.js') as typeof Generations;

/** What grows. */
export interface Size {
  readonly clients: number;
  readonly floors: number;
  /** Scopes in the token; the route asks for the last one. */
  readonly scopes: number;
  readonly routes: number;
  readonly issuers: number;
}

/** An app of some size, and who issues tokens for it. */
export interface SizedApp {
  readonly app: RequestListener;
  /** Asks for the last scope, on the last route, of the last issuer. */
  token(client: number): string;
  readonly path: string;
}

/** Makes the app; `gated: false` leaves out the gate and its guards, and nothing else. */
export async function sizedApp(size: Size, gated: boolean): Promise<SizedApp> {
  const generations = await filled(Math.max(size.floors, size.clients));
  const issuers = Array.from({ length: size.issuers }, (_, index) =>
    createTestIssuer({ issuer: `https://login-${index}.test` }),
  );
  const scopes = Array.from({ length: size.scopes }, (_, index) => `scope:${index}`);
  const app = express();
  const gate = authenticate({
    issuers: issuers.map(({ options: { issuer, audience, keys } }) => ({ issuer, audience, keys, generations })),
  });
  if (gated) app.use('/v1', gate);
  for (let route = 0; route < size.routes; route++) {
    const guards = gated ? [requireScope(scopes.at(-1) ?? '')] : [];
    app.get(`/v1/orders-${route}`, ...guards, (_req, res) => void res.json({ id: 'order-1' }));
  }
  await gate.ready();
  const last = issuers.at(-1);
  if (!last) throw new Error('expected at least one issuer');
  return {
    app,
    path: `/v1/orders-${size.routes - 1}`,
    token: (client) => last.token({ clientId: `client-${client}`, scope: scopes.join(' '), generation: GENERATION }),
  };
}

const GENERATION = 1_700_000_000_000;

/** A source with a floor for each client, as a token server has that all of them are registered at. */
async function filled(floors: number): Promise<GenerationSource> {
  const source = memoryGenerations();
  for (let client = 0; client < floors; client++) await source.append([[`client-${client}`, GENERATION]]);
  return source;
}
