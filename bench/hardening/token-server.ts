/** The embedded token server on the directory argv[2], in a process that is there to be killed; prints its address. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAuthServer } from '../../src/auth-server/index';

async function main(dataDir: string): Promise<void> {
  const auth = await createAuthServer({
    issuer: 'http://login.test',
    audience: 'http://api.test',
    dataDir,
    signingAlgorithm: 'ES256',
    rateLimit: false,
  });
  const server = createServer(auth.handler).listen(0, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
}

void main(process.argv[2] ?? '');
