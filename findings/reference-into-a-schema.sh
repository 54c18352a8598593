#!/usr/bin/env bash
# Packages:  express 5.3.0, express-openapi-validator 5.6.2, openapi-backend 5.21.2 (npm)
# Behaviour: one component schema refers to a member of another, `#/components/schemas/Order/properties/id`, as any JSON pointer may. The
#            validator starts without a complaint and then responds 500 to every request, also to paths that use neither schema.
#            openapi-backend validates by the same description, and so does the validator with `$refParser: { mode: 'dereference' }`.
# Seen:      GET /health 500 "can't resolve reference #/components/schemas/Order/properties/id"; with the other mode 200, and 400 for an id
#            that is not an integer; openapi-backend the same.
# Surprise:  the same reference in a request body, outside the components, works. One shared schema takes the whole API down, at the first
#            request and not at the start.
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

const reference = { $ref: '#/components/schemas/Order/properties/id' };
const order = { type: 'object', properties: { id: { type: 'integer' } } };
const line = { type: 'object', properties: { order: reference } };
const operation = (operationId, schema) => ({
  operationId,
  ...(schema && { requestBody: { content: { 'application/json': { schema } } } }),
  responses: { 200: { description: 'OK' } },
});
const describe = (schemas, body) => ({
  openapi: '3.0.3',
  info: { title: 'Shop', version: '1' },
  components: { schemas },
  paths: { '/lines': { post: operation('add', body) }, '/health': { get: operation('health') } },
});
const component = () => describe(structuredClone({ Order: order, Line: line }), { $ref: '#/components/schemas/Line' });
const inline = () => describe(structuredClone({ Order: order }), structuredClone(line));

async function ask(options) {
  const app = express();
  app.use(express.json(), validator.middleware(options));
  app.use((_req, res) => res.json('accepted'));
  app.use((error, _req, res, _next) => res.status(error.status ?? 500).json(error.message));
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const base = `http://127.0.0.1:${server.address().port}`;
  const init = (id) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ order: id }) });
  const responses = [await fetch(`${base}/health`), await fetch(`${base}/lines`, init(1)), await fetch(`${base}/lines`, init('x'))];
  try {
    return { statuses: responses.map(({ status }) => status), health: await responses[0].json() };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const seen = {
  byDefault: await ask({ apiSpec: component() }),
  dereferenced: await ask({ apiSpec: component(), $refParser: { mode: 'dereference' } }),
  inline: await ask({ apiSpec: inline() }),
};
const handlers = { add: () => 'accepted', health: () => 'accepted', validationFail: (context) => context.validation.errors[0].message };
const api = new OpenAPIBackend({ definition: component(), handlers });
await api.init();
const add = (id) =>
  api.handleRequest({ method: 'POST', path: '/lines', headers: { 'content-type': 'application/json' }, body: { order: id } });
const backend = [await add(1), await add('x')];
console.log(seen, backend);
assert.deepEqual(seen.byDefault.statuses, [500, 500, 500]);
assert.match(seen.byDefault.health, /can't resolve reference #\/components\/schemas\/Order\/properties\/id/);
assert.deepEqual(seen.dereferenced.statuses, [200, 200, 400]);
assert.deepEqual(seen.inline.statuses, [200, 200, 400]);
assert.deepEqual(backend, ['accepted', 'must be integer']);
EOF
node run.mjs
