import middie from '@fastify/middie';
import assert from 'node:assert/strict';
import { createServer } from 'node:http2';
import { test } from 'node:test';
import express from 'express';
import type { Request } from 'express';
import fastify from 'fastify';
import { authenticate, authOf, requireAuthenticated, requireClaim, requireScope } from 'tillgate';
import { createTestIssuer } from '@tillgate/testing';

const issuer = createTestIssuer();
const gate = authenticate(issuer.options);
const guard = requireScope('orders:read');
const headers = { authorization: `Bearer ${issuer.token({ scope: 'orders:read', clientId: 'till-1' })}` };
const foreign = { authorization: `Bearer ${issuer.token({ scope: 'orders:write' })}` };

test('Fastify runs gate and guard as middlewares by middie, and authOf() knows the caller', async () => {
  const app = fastify();
  await app.register(middie);
  app.use(gate);
  app.use('/orders', guard);
  app.get('/orders', (request) => ({ caller: authOf(request.raw)?.clientId }));
  assert.deepEqual((await app.inject({ url: '/orders', headers })).json(), { caller: 'till-1' });
  assert.equal((await app.inject({ url: '/orders', headers: foreign })).statusCode, 403);
  assert.equal((await app.inject({ url: '/orders' })).statusCode, 401);
  await app.close();
});

test('Fastify runs gate and guard as hooks', async () => {
  const app = fastify();
  app.addHook('onRequest', (request, reply, done) => gate(request.raw, reply.raw, done));
  const onRequest = guardHook();
  app.get('/orders', { onRequest }, (request) => ({ caller: authOf(request.raw)?.clientId }));
  assert.deepEqual((await app.inject({ url: '/orders', headers })).json(), { caller: 'till-1' });
  assert.equal((await app.inject({ url: '/orders', headers: foreign })).statusCode, 403);
  assert.equal((await app.inject({ url: '/orders' })).statusCode, 401);
  await app.close();
});

function guardHook() {
  return (
    request: { readonly raw: Parameters<typeof guard>[0] },
    reply: { readonly raw: Parameters<typeof guard>[1] },
    done: (error?: Error) => void,
  ): void => guard(request.raw, reply.raw, done);
}

// Compiled, not run: what fits whom.
export function fits(): void {
  createServer((req, res) => gate(req, res, () => guard(req, res, () => res.end(authOf(req)?.clientId ?? ''))));
  express()
    .use(gate)
    .get(
      '/stores/:store',
      requireClaim('store', (value, req: Request) => value === req.params['store']),
      requireClaim('tenant', (value, req) => value === req.auth?.claims['tenant']),
      requireAuthenticated(),
      (req, res) => void res.json({ caller: req.auth?.clientId }),
    );
}
