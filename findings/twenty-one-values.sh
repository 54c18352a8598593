#!/usr/bin/env bash
# Packages:  express 4.22.3, express 5.3.0, openapi-backend 5.21.2, qs 6.17.1 (npm)
# Behaviour: `?id=1&id=2` and so on is an array up to 20 values. From the 21st on, Express 5 with `query parser: extended` has an object with
#            the keys "0" to "20" in its place, and openapi-backend refuses the array that its description asks for. Express 4 keeps the
#            array, and so does the body parser of both.
# Seen:      20 values: an array everywhere; 21: Express 4 array, Express 5 object, express.urlencoded of Express 5 array;
#            openapi-backend 200, then 400 "must be array".
# Surprise:  the setting is what an app takes that moves from Express 4 and wants the queries it had. It has them up to 20 values; the
#            first list of 21 fails at `.map`, or is refused with a message that is wrong about what was sent.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund \
  express@5.3.0 express-4@npm:express@4.22.3 openapi-backend@5.21.2 qs@6.17.1
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import express4 from 'express-4';
import { OpenAPIBackend } from 'openapi-backend';

const values = (count) => Array.from({ length: count }, (_, index) => `id=${index}`).join('&');

async function kinds(framework, count) {
  const app = framework();
  app.set('query parser', 'extended');
  app.use(framework.urlencoded({ extended: true }));
  app.post('/', (req, res) => res.json([Array.isArray(req.query.id), Array.isArray(req.body.id), Object.keys(req.query.id).length]));
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    const url = `http://127.0.0.1:${server.address().port}/?${values(count)}`;
    return await (await fetch(url, { method: 'POST', body: new URLSearchParams(values(count)) })).json();
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const get = {
  operationId: 'list',
  parameters: [{ name: 'id', in: 'query', schema: { type: 'array', items: { type: 'string' } } }],
  responses: { 200: { description: 'OK' } },
};
const definition = { openapi: '3.0.3', info: { title: 'Shop', version: '1' }, paths: { '/': { get } } };
const handlers = { list: () => 'accepted', validationFail: (context) => context.validation.errors[0].message };
const api = new OpenAPIBackend({ definition, handlers });
await api.init();
const list = (count) => api.handleRequest({ method: 'GET', path: '/', query: values(count), headers: {} });

const seen = {
  express4: await kinds(express4, 21),
  express5: [await kinds(express, 20), await kinds(express, 21)],
  backend: [await list(20), await list(21)],
};
console.log(JSON.stringify(seen));
assert.deepEqual(seen, {
  express4: [true, true, 21],
  express5: [
    [true, true, 20],
    [false, true, 21],
  ],
  backend: ['accepted', 'must be array'],
});
EOF
node run.mjs
