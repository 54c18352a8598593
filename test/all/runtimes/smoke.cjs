// A gate behind Express whose keys are fetched, then tokens that are accepted and refused: prints what happened, as JSON. `smoke.cjs <folder
// of the gate> <folder of the testing kit>`
const { once } = require('node:events');
const http = require('node:http');
const { join } = require('node:path');
const express = require('express');

const [gateFolder, kitFolder] = process.argv.slice(2);
const { authenticate, problemHandler, requireScope } = require(join(gateFolder, 'index'));
const { startTestIssuer } = require(join(kitFolder, 'index'));

async function main() {
  const issuer = await startTestIssuer();
  const { options } = issuer;
  const gate = authenticate({ ...options, exposeReasons: true });
  let reached = 0;
  const app = express();
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope('orders:read'), (_req, res) => res.json({ reached: ++reached }));
  app.use(problemHandler());
  const server = http.createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');

  async function get(token) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`http://127.0.0.1:${server.address().port}/v1/orders`, { headers });
    const { code } = await response.json();
    return [response.status, code ?? null, response.headers.get('www-authenticate')?.split(' ')[0] ?? null, reached];
  }

  const scope = 'orders:read';
  const before = issuer.token({ scope });
  const results = {
    accepted: await get(before),
    known: await get(before),
    withoutScope: await get(issuer.token()),
    withoutToken: await get(),
    expired: await get(issuer.token({ scope, expired: true })),
    unsigned: await get(issuer.token({ scope, algorithm: 'none' })),
    foreignKey: await get(issuer.token({ scope, foreignKey: true })),
    superseded: (issuer.bump(), await get(before)),
    renewed: await get(issuer.token({ scope })),
    fetches: issuer.fetches,
  };
  await gate.close();
  await issuer.close();
  console.log(JSON.stringify(results));
  process.exit();
}

void main();
