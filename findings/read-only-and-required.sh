#!/usr/bin/env bash
# Packages:  express 5.3.0, express-openapi-validator 5.6.2, openapi-backend 5.21.2 (npm)
# Behaviour: the usual schema of an order has `id` as `readOnly` and `required`. OpenAPI 3.0 (Schema Object, readOnly) has that demand hold
#            for responses only. openapi-backend demands the `id` in a request, and express-openapi-validator refuses a request with it.
# Seen:      POST without id: 400 "must have required property 'id'" from openapi-backend, 200 from the validator; with id: 200 and
#            400 "request/body/id is read-only".
# Surprise:  the two accept no request in common: the body that one demands is the one the other refuses. A shop that moves from one to
#            the other with its description untouched breaks every caller that creates something.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund express@5.3.0 express-openapi-validator@5.6.2 openapi-backend@5.21.2
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import validator from 'express-openapi-validator';
import { OpenAPIBackend } from 'openapi-backend';

const schema = {
  type: 'object',
  required: ['id', 'item'],
  properties: { id: { type: 'string', readOnly: true }, item: { type: 'string' } },
};
const post = {
  operationId: 'create',
  requestBody: { required: true, content: { 'application/json': { schema } } },
  responses: { 200: { description: 'OK' } },
};
const description = () => structuredClone({ openapi: '3.0.3', info: { title: 'Shop', version: '1' }, paths: { '/orders': { post } } });

function validated() {
  const app = express();
  app.use(express.json(), validator.middleware({ apiSpec: description() }));
  app.post('/orders', (_req, res) => res.json('created'));
  app.use((error, _req, res, _next) => res.status(error.status ?? 500).json(error.message));
  return app;
}

async function dispatched() {
  const handlers = {
    create: (_context, _req, res) => res.json('created'),
    validationFail: (context, _req, res) => res.status(400).json(context.validation.errors[0].message),
  };
  const api = new OpenAPIBackend({ definition: description(), handlers });
  await api.init();
  const app = express();
  const forward = ({ method, path, body, headers }) => ({ method, path, body, headers });
  app.use(express.json(), (req, res) => api.handleRequest(forward(req), req, res));
  return app;
}

async function create(app) {
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const send = async (order) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(order) };
    const response = await fetch(`http://127.0.0.1:${server.address().port}/orders`, init);
    return [response.status, await response.json()];
  };
  try {
    return { without: await send({ item: 'tea' }), with: await send({ id: '1', item: 'tea' }) };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const ofValidator = await create(validated());
const ofBackend = await create(await dispatched());
console.log({ ofValidator, ofBackend });
assert.deepEqual(ofValidator, { without: [200, 'created'], with: [400, 'request/body/id is read-only'] });
assert.deepEqual(ofBackend, { without: [400, "must have required property 'id'"], with: [200, 'created'] });
EOF
node run.mjs
