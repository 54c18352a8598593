import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A port of this machine that is free, and that the system gives to nobody who asks for any port: it stays free until the
 * server listens, however many connections other suites open meanwhile.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
