import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(import.meta.url);

/** The token server with all that is on by default; the limit on requests is kept, and too high to be met. */
export async function mount({ issuer, audience, algorithm, clients, scope }) {
  const { createAuthServer } = require('../../../dist/auth-server/index.js');
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-issuing-'));
  process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }));
  const server = await createAuthServer({
    ...{ issuer, audience, dataDir, signingAlgorithm: algorithm },
    rateLimit: { limit: 1_000_000_000, windowMs: 60_000 },
  });
  const credentials = [];
  for (const client_id of clients) credentials.push(await server.register({ client_id, scope }));
  return { listener: server.handler, path: '/connect/token', credentials };
}
