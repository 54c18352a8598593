import type { Pool } from 'pg';
import { generationSourceCases } from '../../../src/testing/source-cases/source-cases';
import type { GenerationSourceFixture } from '../../../src/testing/source-cases/harness';
import { anyPostgres } from '../support/postgres-server';
import { stalled, startTcpProxy } from '../support/tcp-proxy';
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

/** A schema for every case, so that a server that was given is left as it was. Names are quoted, so capitals count. */
async function create(): Promise<GenerationSourceFixture> {
  const schema = `Tillgate_${process.pid}_${++fixtures}`;
  const table = `"${schema}"."Log"`;
  await admin.query(`CREATE SCHEMA "${schema}"`);
  const wired = new URL(url);
  const wire = await startTcpProxy(Number(wired.port));
  wired.port = String(wire.port);
  const config = { connectionString: wired.href, application_name: schema, connectionTimeoutMillis: 10_000 };
  const open = (): OpenSource => openSource(config, { table: `${schema}.Log`, timeoutMs: 10_000 });
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
    async wipe() {
      await admin.query(`TRUNCATE ${table} RESTART IDENTITY`);
    },
    async snapshot() {
      await admin.query(`CREATE TABLE "${schema}".copy AS SELECT * FROM ${table}`);
      const { rows } = await admin.query<{ last: string }>(`SELECT last_value AS last FROM "${schema}"."Log_position"`);
      return async () => {
        await admin.query(`TRUNCATE ${table}; INSERT INTO ${table} SELECT * FROM "${schema}".copy;
          SELECT setval('"${schema}"."Log_position"', ${rows[0]?.last})`);
      };
    },
    stall: () => stalled(wire),
    async close() {
      await Promise.all(opened.map((one) => one.close()));
      await wire.close();
      await admin.query(`DROP SCHEMA "${schema}" CASCADE`);
    },
  };
}

describe('postgresGenerations against a real server', () => {
  it.each(generationSourceCases({ create, timeoutMs: 10_000 }))('$name', ({ run }) => run());
});
