import express from 'express';
import type { RequestHandler } from 'express';
import { authenticate, requireScope } from '../../src/gate';
import { auditRoutes, contractCases, createTestIssuer } from '../../src/testing';
import { messagesIn } from '../support/messages';
import { failuresOf } from './failures-of';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- a package under another name, without types
const express4 = require('express-4') as typeof express;

const texts = messagesIn('From the testing kit');
const issuer = createTestIssuer();
const gate = authenticate(issuer.options);

function documentOf(path: string, method: string, security: object): object {
  const flows = { clientCredentials: { tokenUrl: 'https://login.test/token', scopes: { 'orders:read': '' } } };
  const securitySchemes = {
    login: { type: 'oauth2', flows },
    key: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
  };
  const operation = { security: [security], responses: { 200: { description: 'ok' } } };
  return { openapi: '3.0.3', components: { securitySchemes }, paths: { [path]: { [method]: operation } } };
}

describe('two required schemes', () => {
  const document = documentOf('/orders', 'get', { login: ['orders:read'], key: [] });

  function ask(status: number, headers: Readonly<Record<string, string>> = {}) {
    const requireKey: RequestHandler = (req, res, next) =>
      req.get('x-api-key') === 'k' ? next() : void res.status(status).json({ message: 'forbidden' });
    const app = express().get(
      '/orders',
      gate,
      requireScope('orders:read'),
      requireKey,
      (_req, res) => void res.json([]),
    );
    return contractCases({ app, openapi: document, issuer, headers, classes: ['scope'] });
  }

  it('the case says which value is missing when its good token is refused', async () => {
    expect(await failuresOf(ask(403))).toEqual([
      `GET /orders accepts a token with only orders:read\n  ${texts['two required schemes']}`,
    ]);
  });

  it('the report says which value is missing when the status is another one', async () => {
    const cases = ask(400);
    await failuresOf(cases);
    expect(cases.report().notTested).toEqual([
      'GET /orders: good tokens got 400; give values that exist in "requests"; its security also needs header X-Api-Key: give the value in "headers" or "requests"',
    ]);
  });

  it('with the value the operation is tested', async () => {
    const cases = ask(403, { 'X-Api-Key': 'k' });
    expect(await failuresOf(cases)).toEqual([]);
    expect(cases.report().tested).toEqual(['GET /orders']);
  });
});

it('the audit finds a custom verb of Express 4 in the document', () => {
  const app = express4().use(gate);
  app.post('/orders/:id\\:cancel', requireScope('orders:read'), (_req, res) => void res.json({}));
  expect(auditRoutes(app, documentOf('/orders/{id}:cancel', 'post', { login: ['orders:read'] }))).toEqual([]);
  expect(texts['a custom verb on Express 4, `/orders/:id\\\\:cancel`']).toBe('found in the document');
});
