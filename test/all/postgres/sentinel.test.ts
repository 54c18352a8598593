import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { openSource, quietPool, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const OLD = Date.now() - 60_000;
const FLOOR = OLD + 1;

let server: PostgresServer;
let ends: (() => Promise<unknown>)[];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.stop());

beforeEach(() => {
  ends = [];
});

afterEach(async () => {
  for (const end of ends.reverse()) await end();
});

function open(): OpenSource['source'] {
  const opened = openSource({ connectionString: server.url }, { sentinel: true });
  ends.push(() => opened.close());
  return opened.source;
}

async function write(source: OpenSource['source'], sentinel: number): Promise<void> {
  await source.publish('pos', FLOOR);
  await source.sentinel?.write(sentinel);
}

it.each([
  ['wiped', 'DELETE FROM tillgate_generations'],
  ['restored from an older dump', `DELETE FROM tillgate_generations WHERE client_id <> ''`],
])(
  'a PostgreSQL that is %s: a process that starts refuses all until the publisher has repaired it',
  async (_, loss) => {
    const publisher = open();
    await write(publisher, FLOOR);
    const running = startVerifier(open());
    ends.push(() => running.close());
    await running.ready();
    const pool = quietPool(server.url);
    await pool.query(loss);
    await pool.end();

    const cold = startVerifier(open());
    ends.push(() => cold.close());
    await eventually('its first read', async () => (await publisher.read(0)).nowMs > 0);
    expect(verdict(cold, 'pos', FLOOR)).toBe('generations_unavailable');
    expect(verdict(running, 'pos', OLD)).toBe('superseded');
    await write(publisher, Date.now());
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('superseded');
    expect(verdict(cold, 'pos', FLOOR)).toBe('admitted');
  },
);

it('a client id of 2,600 bytes can be indexed, whatever its bytes', async () => {
  const source = open();
  const clientId = Array.from({ length: 2_600 }, (_, n) => String.fromCharCode(33 + ((n * n * 7 + n * 13) % 94))).join(
    '',
  );
  await source.publish(clientId, FLOOR);
  expect([...(await source.read(0)).floors]).toContainEqual([clientId, FLOOR]);
});
