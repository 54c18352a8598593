import { Redis } from 'ioredis';
import { Client } from 'pg';
import { DEFAULT_KEY } from '../../src/generation/redis/source';

const BATCH = 10_000;
const SPREAD_MS = 10 * 3_600_000;

/** Puts `client-0` to `client-N` into a store, as its own bulk writes do it, with generations of the last hours. */
export async function fill(url: string, count: number): Promise<void> {
  if (url.startsWith('redis')) await fillRedis(url, count);
  else if (url.startsWith('postgres')) await fillPostgres(url, count);
  else throw new Error('only redis and postgres are filled in bulk');
}

async function fillRedis(url: string, count: number): Promise<void> {
  const client = new Redis(url);
  const latest = Date.now() - 60_000;
  for (let first = 0; first < count; first += BATCH) {
    const length = Math.min(BATCH, count - first);
    const pairs = Array.from({ length }, (_, offset) => [
      String(latest - ((first + offset) % SPREAD_MS)),
      `client-${first + offset}`,
    ]).flat();
    await client.call('ZADD', DEFAULT_KEY, 'GT', ...pairs);
  }
  client.disconnect();
}

async function fillPostgres(url: string, count: number): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query(
    `INSERT INTO tillgate_generations (client_id, generation)
     SELECT 'client-' || n, $1::bigint - n % ${SPREAD_MS} FROM generate_series(0, $2::int - 1) AS n
     ON CONFLICT (client_id) DO UPDATE SET generation = greatest(tillgate_generations.generation, excluded.generation)`,
    [Date.now() - 60_000, count],
  );
  await client.end();
}
