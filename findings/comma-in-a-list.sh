#!/usr/bin/env bash
# Packages:  openapi-fetch 0.17.0, express 5.3.0, express-openapi-validator 5.6.2, openapi-backend 5.21.2 (npm)
# Behaviour: a query array of `style: form`, `explode: false` is sent as `a%2Cb,c`: an encoded comma belongs to the item, a plain one parts
#            two items (RFC 6570 section 3.2.8, to which OpenAPI refers). openapi-fetch writes it so. Both servers decode first and
#            split afterwards.
# Seen:      ["a,b","c"] leaves the client as "a%2Cb,c" and reaches both handlers as ["a","b","c"]; maxItems 2 refuses it with 400.
# Surprise:  all three follow the same description, and an item with a comma (a product name, a price of "1,50") still becomes two.
#            Each part is a valid item, so validation notices nothing, or counts one item too many.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund \
  openapi-fetch@0.17.0 express@5.3.0 express-openapi-validator@5.6.2 openapi-backend@5.21.2
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import express from 'express';
import validator from 'express-openapi-validator';
import { OpenAPIBackend } from 'openapi-backend';
import createClient from 'openapi-fetch';

const list = (maxItems) => ({
  get: {
    operationId: `atMost${maxItems}`,
    parameters: [
      { name: 'names', in: 'query', style: 'form', explode: false, schema: { type: 'array', maxItems, items: { type: 'string' } } },
    ],
    responses: { 200: { description: 'OK' } },
  },
});
const description = () => ({
  openapi: '3.0.3',
  info: { title: 'Shop', version: '1' },
  paths: { '/products': list(9), '/two': list(2) },
});

function validated() {
  const app = express();
  app.use(validator.middleware({ apiSpec: description() }));
  app.use((req, res) => res.json(req.query.names));
  app.use((error, _req, res, _next) => res.status(error.status ?? 500).json(error.message));
  return app;
}

async function dispatched() {
  const handler = (context, _req, res) => res.json(context.request.query.names);
  const handlers = { atMost9: handler, atMost2: handler, validationFail: (context, _req, res) => res.status(400).json('refused') };
  const api = new OpenAPIBackend({ definition: description(), handlers });
  await api.init();
  const app = express();
  app.use((req, res) => {
    const [path, query] = req.url.split('?');
    return api.handleRequest({ method: req.method, path, query, headers: req.headers }, req, res);
  });
  return app;
}

async function ask(app) {
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const sent = [];
  const send = (request) => {
    sent.push(new URL(request.url).search);
    return fetch(request);
  };
  const client = createClient({ baseUrl: `http://127.0.0.1:${server.address().port}`, fetch: send });
  const options = { params: { query: { names: ['a,b', 'c'] } }, querySerializer: { array: { style: 'form', explode: false } } };
  try {
    const { data } = await client.GET('/products', options);
    const { response } = await client.GET('/two', options);
    return { sent: sent[0], received: data, atMostTwo: response.status };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

for (const app of [validated(), await dispatched()]) {
  const seen = await ask(app);
  console.log(seen);
  assert.deepEqual(seen, { sent: '?names=a%2Cb,c', received: ['a', 'b', 'c'], atMostTwo: 400 });
}
EOF
node run.mjs
