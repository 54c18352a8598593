/** The token server of the chaos run: `<data folder> <port> [URL of the log]`, on the same port after each restart. */
import { createServer } from 'node:http';
import { createAuthServer } from '../../../src/cli/auth-server';
import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import type { Change } from '../../../src/gate/generation';
import { publishTo } from './publish-to';

const [dataDir = '', port = '', url] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const logger = { info() {}, warn() {}, error() {} };

void createAuthServer({ issuer, audience: issuer, dataDir, rateLimit: false, logger }).then(
  async ({ handler, generations }) => {
    const tell = (published: Change): unknown => process.send?.({ published });
    if (url) await publishTo(generationsFromUrl(url), generations, { logger }, tell);
    createServer(handler).listen(Number(port), '127.0.0.1', () => process.send?.({ port: Number(port) }));
  },
);
process.on('disconnect', () => process.exit());
