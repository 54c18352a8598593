import { createAuthServer } from '../../../src/cli/auth-server';

/** Registers clients, eight at a time, and prints each on its own line once the response has arrived, until it is killed. */
async function main(dataDir: string): Promise<void> {
  const auth = await createAuthServer({ issuer: 'http://login.test', audience: 'http://api.test', dataDir });
  const keepAlive = setInterval(() => {}, 1_000);
  async function register(worker: number): Promise<void> {
    for (let index = 0; ; index += 1) {
      const client_id = `client-${worker}-${index}`;
      const client = await auth.register({ client_id, scope: 'orders:read' });
      process.stdout.write(`${client_id} ${client.client_secret} ${client.generation}\n`);
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, worker) => register(worker)));
  clearInterval(keepAlive);
}

void main(process.argv[2] ?? '');
