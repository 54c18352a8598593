import type { Pool } from 'pg';
import { generationSourceCases } from '../../../src/testing';
import type { GenerationSourceFixture } from '../../../src/testing';
import { anyPostgres } from '../support/postgres-server';
import { openSource, quietPool } from './fixtures';
import type { OpenSource } from './fixtures';

let url: string;
let admin: Pool;
let stopServer: () => Promise<void>;
let fixtures = 0;

beforeAll(async () => {
  const server = await anyPostgres();
  url = server.url;
  stopServer = () => server.stop();
  admin = quietPool(url);
});

afterAll(async () => {
  await admin.end();
  await stopServer();
});

/** The cases publish times of 2001, which no token of today needs. */
const FOREVER = 100 * 365 * 86_400_000;

/** A schema for every case, so that a server that was given is left as it was. */
async function create(): Promise<GenerationSourceFixture> {
  const schema = `tillgate_case_${process.pid}_${++fixtures}`;
  await admin.query(`CREATE SCHEMA ${schema}`);
  const open = (): OpenSource =>
    openSource(
      { connectionString: url, application_name: schema },
      { table: `${schema}.floors`, maxTokenAgeMs: FOREVER },
    );
  const own = open();
  const opened = [own];
  return {
    source: own.source,
    another: () => {
      const other = open();
      opened.push(other);
      return Promise.resolve(other.source);
    },
    async disconnect() {
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [schema]);
    },
    async close() {
      await Promise.all(opened.map((one) => one.close()));
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
    },
  };
}

describe('postgresGenerations against a real server', () => {
  it.each(generationSourceCases({ create, timeoutMs: 10_000 }))('$name', ({ run }) => run());
});
