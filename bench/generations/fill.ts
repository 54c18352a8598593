import { Redis } from 'ioredis';
import { Client } from 'pg';

const BATCH = 5_000;
const SPREAD_MS = 10 * 3_600_000;

/** Appends changes of `client-0` to `client-N` to a log, with generations of the last hours, as any program could. */
export async function fill(url: string, count: number): Promise<void> {
  if (url.startsWith('redis')) await fillRedis(url, count);
  else if (url.startsWith('postgres')) await fillPostgres(url, count);
  else throw new Error('only redis and postgres are filled in bulk');
}

async function fillRedis(url: string, count: number): Promise<void> {
  const client = new Redis(url);
  const latest = Date.now() - 60_000;
  for (let first = 0; first < count; first += BATCH) {
    const pipeline = client.pipeline();
    for (let n = first; n < Math.min(count, first + BATCH); n++) {
      pipeline.xadd('tillgate:generations', '*', 'client_id', `client-${n}`, 'generation', latest - (n % SPREAD_MS));
    }
    await pipeline.exec();
  }
  const bytes = await client.memory('USAGE', 'tillgate:generations', 'SAMPLES', 0);
  console.error(`redis: a log of ${count} changes takes ${((bytes ?? 0) / 1e6).toFixed(2)} MB`);
  client.disconnect();
}

async function fillPostgres(url: string, count: number): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query(
    // With positions of its own: the trigger takes 0.3 ms per row.
    `INSERT INTO tillgate_generations (position, appended_at, client_id, generation)
     SELECT nextval('tillgate_generations_position'), clock_timestamp(), 'client-' || n, $1::bigint - n % ${SPREAD_MS}
     FROM generate_series(0, $2::int - 1) AS n`,
    [Date.now() - 60_000, count],
  );
  await client.end();
}
