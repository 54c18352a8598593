import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { openSource, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const OLD = Date.now() - 60_000;
const FLOOR = OLD + 1;

let first: PostgresServer;
let second: PostgresServer;
let wire: TcpProxy;
let opened: OpenSource[];

beforeEach(async () => {
  [first, second] = await Promise.all([startPostgres(), startPostgres()]);
  wire = await startTcpProxy(first.port);
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.map((one) => one.close()));
  await wire.close();
  await Promise.all([first.stop(), second.stop()]);
});

function open(url: string): OpenSource {
  const one = openSource({ connectionString: url });
  opened.push(one);
  return one;
}

/** A process that reaches the server through the wire: it follows the wire to another one. */
function throughWire(): OpenSource {
  return open(`postgres://postgres@127.0.0.1:${wire.port}/postgres`);
}

/** What a process that starts now says. */
async function coldVerdict(clientId: string, generation: number): Promise<string> {
  const verifier = startVerifier(throughWire().source);
  await verifier.ready();
  const said = verdict(verifier, clientId, generation);
  await verifier.close();
  return said;
}

/** Uses up transaction numbers, one per block. */
async function burn(server: PostgresServer, count: number): Promise<void> {
  const sql = `CREATE TABLE IF NOT EXISTS burnt (n integer);
    DO $$ BEGIN FOR n IN 1..${count} LOOP
      BEGIN INSERT INTO burnt VALUES (n); EXCEPTION WHEN unique_violation THEN NULL; END;
    END LOOP; END $$`;
  await server.tool('psql', ['-q', '-v', 'ON_ERROR_STOP=1'], sql);
}

/** Without the commands to psql that later versions put around a dump: parts of it are restored too. */
async function dump(server: PostgresServer): Promise<string> {
  const sql = await server.tool('pg_dump', ['--clean', '--if-exists']);
  return sql.replace(/^\\(un)?restrict .*$/gm, '');
}

async function restore(sql: string, server: PostgresServer): Promise<void> {
  await server.tool('psql', ['-q', '-v', 'ON_ERROR_STOP=1'], sql);
}

describe('an old dump is restored under running processes', () => {
  it('lowers no floor of a process that knew it; a cold one knows what the dump knew', async () => {
    const [writer, reader] = [open(first.url), throughWire()];
    await writer.source.publish('pos', FLOOR);
    const sql = await dump(first);
    await writer.source.publish('pos', FLOOR + 5);
    await writer.source.publish('kiosk', FLOOR);
    const verifier = startVerifier(reader.source, { pollMs: 100 });
    await verifier.ready();

    await restore(sql, first);
    const { reads } = verifier.status();
    await eventually('two reads of what was restored', () => verifier.status().reads > reads + 1);
    expect(verdict(verifier, 'pos', FLOOR + 4)).toBe('superseded');
    expect(verdict(verifier, 'kiosk', OLD)).toBe('superseded');
    // Both changes are lost to the store: a process that starts now learns them only when they are published again.
    expect(await coldVerdict('pos', FLOOR + 4)).toBe('admitted');
    expect(await coldVerdict('pos', OLD)).toBe('superseded');
    expect(await coldVerdict('kiosk', OLD)).toBe('admitted');

    await writer.source.publish('pos', FLOOR + 9);
    await eventually('the change after it', () => verdict(verifier, 'pos', FLOOR + 8) === 'superseded');
    expect(await coldVerdict('pos', FLOOR + 4)).toBe('superseded');
    await verifier.close();
  });

  it('is the same when the table is emptied', async () => {
    const writer = open(first.url);
    await writer.source.publish('pos', FLOOR);
    const verifier = startVerifier(throughWire().source, { pollMs: 100 });
    await verifier.ready();
    await writer.pool.query('TRUNCATE tillgate_generations');
    const { reads } = verifier.status();
    await eventually('two reads of nothing', () => verifier.status().reads > reads + 1);
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    expect(await coldVerdict('pos', OLD)).toBe('admitted');
    await writer.source.publish('pos', FLOOR);
    expect(await coldVerdict('pos', OLD)).toBe('superseded');
    await verifier.close();
  });

  it('takes no half-restored table for the whole', async () => {
    await open(first.url).source.publish('pos', FLOOR);
    const sql = await dump(first);
    const end = sql.indexOf('CREATE TRIGGER');
    await restore(sql.slice(0, end), second);
    const { source } = open(second.url);
    await expect(source.read(0)).rejects.toThrow(
      /tillgate_generations does not exist or has no trigger tillgate_stamp/,
    );
    await restore(sql.slice(end), second);
    expect([...(await source.read(0)).floors]).toEqual([['pos', FLOOR]]);
  });
});

describe('another server takes over', () => {
  /** A verifier without overlap that has read the first server and then follows the wire to the second. */
  async function failOver(change: (writer: OpenSource) => Promise<void>) {
    await open(first.url).source.publish('pos', FLOOR);
    await restore(await dump(first), second);
    const verifier = startVerifier(throughWire().source, { overlapMs: 0, pollMs: 100 });
    await verifier.ready();
    await first.kill();
    await change(open(second.url));
    wire.switchTo(second.port);
    return verifier;
  }

  it('whose transaction numbers are lower and whose clock is an hour slow: everything is read again', async () => {
    await burn(first, 5_000);
    const verifier = await failOver(async (writer) => {
      await writer.source.publish('kiosk', FLOOR);
      await changeWithoutStamp(writer, "changed_at = now() - interval '1 hour'");
    });
    await eventually('the change at the second server', () => verdict(verifier, 'kiosk', OLD) === 'superseded');
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    await verifier.close();
  });

  it('whose transaction numbers have overtaken the old ones unseen: the time finds what they hide', async () => {
    await burn(first, 1_000);
    const verifier = await failOver(async (writer) => {
      await writer.source.publish('kiosk', FLOOR);
      await burn(second, 5_000);
    });
    await eventually('the change at the second server', () => verdict(verifier, 'kiosk', OLD) === 'superseded');
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    await verifier.close();
  });

  it('whose numbers hide its changes and whose clock is an hour slow: it was started at another time', async () => {
    await burn(first, 1_000);
    const verifier = await failOver(async (writer) => {
      await writer.source.publish('kiosk', FLOOR);
      await changeWithoutStamp(writer, "changed_at = now() - interval '1 hour'");
      await burn(second, 5_000);
    });
    await eventually('the change at the second server', () => verdict(verifier, 'kiosk', OLD) === 'superseded');
    await verifier.close();
  });

  it('that is empty: what was known is held, a cold process knows nothing until somebody publishes again', async () => {
    const writer = open(second.url);
    await open(first.url).source.publish('pos', FLOOR);
    const verifier = startVerifier(throughWire().source, { pollMs: 100 });
    await verifier.ready();
    await writer.source.read(0);
    wire.switchTo(second.port);
    const { reads } = verifier.status();
    await eventually('two reads of the second server', () => verifier.status().reads > reads + 1);
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    expect(await coldVerdict('pos', OLD)).toBe('admitted');
    await writer.source.publish('pos', FLOOR);
    expect(await coldVerdict('pos', OLD)).toBe('superseded');
    await verifier.close();
  });

  it('with rows whose numbers it has yet to reach: they do not come with every read', async () => {
    await burn(first, 5_000);
    await open(first.url).source.publish('pos', FLOOR);
    await restore(await dump(first), second);
    const { source } = open(second.url);
    const sinceMs = (await source.read(0)).nowMs;
    await eventually('a later time', async () => (await source.read(sinceMs)).nowMs > sinceMs + 1_000);
    expect([...(await source.read(sinceMs + 1)).floors]).toEqual([]);
  });
});

it('finds the changes of two writers whose clocks are 30 s apart', async () => {
  const [fast, slow] = [open(first.url), open(first.url)];
  const verifier = startVerifier(throughWire().source, { overlapMs: 0 });
  await verifier.ready();
  const now = Date.now();
  await fast.source.publish('pos', now + 15_000);
  await eventually('the writer ahead', () => verdict(verifier, 'pos', now + 14_999) === 'superseded');
  await slow.source.publish('kiosk', now - 15_000);
  await eventually('the slow writer', () => verdict(verifier, 'kiosk', now - 15_001) === 'superseded');
  // For the same client a lower number changes nothing: the rule max(previous + 1, now) never makes one.
  await slow.source.publish('pos', now - 15_000);
  await slow.source.publish('pos', now + 15_001);
  await eventually('the slow writer, by the rule', () => verdict(verifier, 'pos', now + 15_000) === 'superseded');
  expect(verdict(verifier, 'pos', now + 15_001)).toBe('admitted');
  expect(await coldVerdict('pos', now + 15_000)).toBe('superseded');
  expect(await coldVerdict('kiosk', now - 15_001)).toBe('superseded');
  await verifier.close();
});

/** Alters rows without the trigger, to play a server with another clock. */
async function changeWithoutStamp({ pool }: OpenSource, assignment: string): Promise<void> {
  await pool.query(`ALTER TABLE tillgate_generations DISABLE TRIGGER ALL;
    UPDATE tillgate_generations SET ${assignment};
    ALTER TABLE tillgate_generations ENABLE TRIGGER ALL`);
}
