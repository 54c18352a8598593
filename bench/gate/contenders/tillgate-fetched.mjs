import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const BUILT = fileURLToPath(new URL('../../../src/gate/dist', import.meta.url));

/** A default gate: its keys are fetched, unless they are given, and it has no source of generations. For the start alone. */
export async function mount(app, { issuer, audience, jwksUri, keys, gate: folder = BUILT, respond }) {
  const { authenticate, requireScope } = require(`${folder}/index.js`);
  const gate = authenticate({ issuer, audience, jwksUri, keys });
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope('orders:read'), respond);
  await gate.ready();
}
