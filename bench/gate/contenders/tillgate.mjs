import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Set up as in the README: every default check, and floors from a source. */
export async function mount(app, { issuer, audience, jwksUri, keys, dpop, respond }) {
  const { authenticate, requireScope } = require('../../../src/gate/dist/index.js');
  const { memoryGenerations } = require('../../../src/gate/dist/generation/index.js');
  const proofs = dpop && {
    possession: [
      require('../../../src/gate/dist/possession/index.js').dpop({
        baseUrl: 'http://api.example.com',
        proofMaxAgeSeconds: 600,
      }),
    ],
  };
  const gate = authenticate({ issuer, audience, jwksUri, keys, generationSource: memoryGenerations(), ...proofs });
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope('orders:read'), respond);
  await gate.ready();
}
