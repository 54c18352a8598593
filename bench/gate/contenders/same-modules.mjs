import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Two empty middlewares in a process that has loaded what the gate loads: what the memory of its code alone costs. */
export async function mount(app, { issuer, audience, jwksUri, respond }) {
  const { authenticate } = require('../../../src/gate/dist/index.js');
  const { memoryGenerations } = require('../../../src/gate/dist/generation/index.js');
  await authenticate({ issuer, audience, jwksUri, generationSource: memoryGenerations() }).ready();
  const { mount: mountNothing } = await import('./two-noops.mjs');
  mountNothing(app, { respond });
}
