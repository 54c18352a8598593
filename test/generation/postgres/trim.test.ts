import { fakeTime, settle } from '../../support/fake-time';
import { START } from '../fixtures';
import { sourceFromUrl } from '../../../src/generation/postgres/source';
import { FakeClient, HEALTHY, fakeSource } from './fake';
import type { FakeSource, Script } from './fake';

/** A source with the number of its trims so far. */
function trimming(script: Script = {}, options: Parameters<typeof fakeSource>[1] = {}) {
  const fake = fakeSource(script, options);
  const statements = (): string[] => fake.pool.clients.flatMap(({ asked }) => asked);
  return { ...fake, trims: () => statements().filter((text) => text.startsWith('WITH old')), statements };
}

async function publish({ source, time }: FakeSource): Promise<void> {
  await source.publish('pos', START);
  await time.advance(0);
}

describe('old floors', () => {
  it('are removed after a publish, at most once a second, and only then', async () => {
    const fake = trimming();
    await fake.source.read(0);
    await fake.source.sentinel?.write(START);
    expect(fake.trims()).toHaveLength(0);
    await publish(fake);
    await publish(fake);
    expect(fake.trims()).toHaveLength(1);
    await fake.time.advance(999);
    expect(fake.trims()).toHaveLength(1);
    await fake.time.advance(1);
    expect(fake.trims()).toHaveLength(2);
    await fake.time.advance(60_000);
    expect([fake.trims().length, fake.time.pending]).toEqual([2, 0]);
    await publish(fake);
    expect(fake.trims()).toHaveLength(3);
  });

  it('are looked for again, without a publish, as long as there were as many as one statement removes', async () => {
    const removed = ['1000', '1000', '7'];
    const fake = trimming({ 'WITH old': () => [{ removed: removed.shift() }] });
    await publish(fake);
    await fake.time.advance(10_000);
    expect([fake.trims().length, fake.time.pending]).toEqual([3, 0]);
  });

  it('do not delay the publish', async () => {
    const fake = trimming({ 'WITH old': new Promise<never>(() => undefined) });
    await publish(fake);
    await publish(fake);
    expect(fake.trims()).toHaveLength(1);
  });

  it('that cannot be removed fail no publish; the log says so once, and it is tried again a minute later', async () => {
    const denied = Object.assign(new Error('denied'), { code: '42501' });
    const results = [denied, denied, [{ removed: '0' }], denied];
    const fake = trimming({ 'WITH old': () => results.shift() ?? [] });
    for (const pauseMs of [60_000, 60_000, 1_000, 0]) {
      await publish(fake);
      await fake.time.advance(pauseMs);
    }
    expect(fake.trims()).toHaveLength(4);
    const warning = {
      level: 'warn',
      fields: { table: 'tillgate_generations', detail: expect.stringContaining('DELETE to remove old floors') },
      message: 'old generations cannot be removed from the table, so it grows; publishing goes on',
    };
    expect(fake.log.entries).toEqual([warning, warning]);
  });

  it('of a table without the index stay: finding them would read the whole table', async () => {
    const fake = trimming({ 'SELECT FROM pg_class': [] }, { table: 'Shop.Floors' });
    await publish(fake);
    expect(fake.trims()).toEqual([]);
    expect(fake.log.entries).toMatchObject([
      { fields: { detail: 'PostgreSQL: the table has no index "Shop"."Floors_age"; postgresSchema() has its SQL' } },
    ]);
  });

  it.each<[string, number | undefined, number]>([
    ['an hour more than a day', undefined, 90_000_000],
    ['an hour more than the option', 3_600_000, 7_200_000],
  ])('are those of %s', async (_, maxTokenAgeMs, keptMs) => {
    const fake = trimming({}, { maxTokenAgeMs });
    await publish(fake);
    expect(fake.trims()[0]).toContain(`transaction_timestamp()) * 1000)::bigint - ${keptMs})`);
  });
});

it('a URL has the token age of the process that opens it', async () => {
  const client = new FakeClient(HEALTHY);
  class Pool {
    on(): void {}
    connect(): Promise<FakeClient> {
      return Promise.resolve(client);
    }
  }
  const time = fakeTime(START);
  const { schedule } = time;
  const source = sourceFromUrl('postgres://db.test/shop', { load: () => ({ Pool }), maxTokenAgeMs: 1_000, schedule });
  await source.publish('pos', START);
  await time.advance(0);
  expect(client.asked.find((text) => text.startsWith('WITH old'))).toContain('- 3601000)');
});

describe('close()', () => {
  it('waits for a removal, and there is none afterwards', async () => {
    let end = (): void => undefined;
    const fake = trimming({ 'WITH old': () => new Promise((resolve) => (end = () => resolve([] as never))) });
    await publish(fake);
    let closed = false;
    const closing = fake.source.close().then(() => (closed = true));
    await settle();
    expect(closed).toBe(false);
    end();
    await closing;
    expect(fake.time.pending).toBe(0);
  });

  it('reports a removal that fails meanwhile', async () => {
    const fake = trimming({ 'WITH old': () => Promise.reject(new Error('the disk is full')) });
    await fake.source.publish('pos', START);
    await fake.source.close();
    expect(fake.log.entries).toMatchObject([{ level: 'warn' }]);
    expect(fake.trims()).toHaveLength(1);
  });

  it('waits half a second for one that hangs', async () => {
    const fake = trimming({ 'WITH old': new Promise<never>(() => undefined) });
    await publish(fake);
    const closing = fake.source.close();
    await fake.time.advance(500);
    await closing;
    expect(fake.log.entries).toEqual([]);
  });
});
