import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** As the README says, with every check that is on by default, and floors from a source. */
export async function mount(app, { issuer, audience, jwksUri, answer }) {
  const { authenticate, requireScope } = require('../../../dist/index.js');
  const { memoryGenerations } = require('../../../dist/generation/index.js');
  const gate = authenticate({ issuer, audience, jwksUri, generationSource: memoryGenerations() });
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope('orders:read'), answer);
  await gate.ready();
}
