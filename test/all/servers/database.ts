import { Client } from 'pg';
import { postgresSchema } from '../../../src/stores';
import { startPostgres } from '../support/postgres-server';
import { sqlOfSection } from './page';

/** A database that a server and a log of generations share. */
export interface Database {
  readonly port: number;
  /** For the server. */
  readonly url: string;
  /** For the gate. */
  readonly generationSource: string;
  query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Creates the log, then what the section of a server shows: its first SQL, or another. */
  follow(name: string, block?: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startDatabase(): Promise<Database> {
  const postgres = await startPostgres();
  const client = new Client({ connectionString: postgres.url });
  client.on('error', () => undefined);
  await client.connect();
  const query = async (sql: string): Promise<Readonly<Record<string, unknown>>[]> => (await client.query(sql)).rows;
  return {
    port: postgres.port,
    url: postgres.url,
    generationSource: `${postgres.url}?mark=off`,
    query,
    async follow(name, block) {
      await query(postgresSchema());
      await query(sqlOfSection(name, block));
    },
    async stop() {
      await client.end();
      await postgres.stop();
    },
  };
}
