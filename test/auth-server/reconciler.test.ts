import type { GenerationSource } from '../../src';
import { memoryGenerations } from '../../src/generation';
import type { Floor } from '../../src/generation';
import { settle } from '../support/fake-time';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

/** A source in memory that can lose everything, be down, hang, and cut its watches. */
function losableSource() {
  let store = memoryGenerations();
  const losses = new Set<(error: unknown) => void>();
  const control = {
    state: 'up' as 'up' | 'down' | 'hanging',
    reads: 0,
    published: [] as string[],
    source: {
      read: (sinceMs: number) => {
        control.reads++;
        return answer(() => store.read(sinceMs));
      },
      watch: async (_wake: () => void, lost: (error: unknown) => void = () => undefined) => {
        await answer(() => Promise.resolve());
        losses.add(lost);
        return () => void losses.delete(lost);
      },
      publish: (clientId: string, generation: number) => {
        control.published.push(clientId);
        return answer(() => store.publish(clientId, generation));
      },
    } satisfies GenerationSource,
    empty: () => void (store = memoryGenerations()),
    cut: () => losses.forEach((lost) => lost(new Error('cut'))),
    floors: async (): Promise<Record<string, number>> => Object.fromEntries((await store.read(0)).floors),
    forget: (floors: readonly Floor[]) => {
      store = memoryGenerations();
      return Promise.all(floors.map(([clientId, generation]) => store.publish(clientId, generation)));
    },
    watches: () => losses.size,
  };
  function answer<Value>(work: () => Promise<Value>): Promise<Value> {
    if (control.state === 'down') return Promise.reject(new Error('postgres://tills:geheim@host is down'));
    return control.state === 'hanging' ? new Promise(() => {}) : work();
  }
  return control;
}

type Source = ReturnType<typeof losableSource>;

/** A token server with two clients and one that is gone, and what it holds. */
async function startWith(control: Source): Promise<{ server: TestServer; held: Record<string, number> }> {
  const server = await startServer({ generations: control.source });
  await registerClient(server);
  await registerClient(server, { client_id: 'kiosk' });
  await registerClient(server, { client_id: 'gone' });
  await server.delete('/clients/gone');
  return { server, held: await control.floors() };
}

function said(server: TestServer): string[] {
  return server.log.entries.map(({ level, message, fields }) => `${level}: ${message} ${JSON.stringify(fields)}`);
}

describe('a source that comes back empty', () => {
  it('has everything again after 30 s at the latest, and the log says so once', async () => {
    const control = losableSource();
    const { server, held } = await startWith(control);
    control.empty();
    await server.time.advance(30_000);
    expect(await control.floors()).toEqual(held);
    expect(Object.keys(held)).toEqual(['pos-17', 'kiosk', 'gone']);
    await server.time.advance(300_000);
    expect(said(server)).toEqual(['warn: the source lacks generations, they are published to it {"floors":3}']);
  });

  it('has everything again as soon as its watch stands again', async () => {
    const control = losableSource();
    const { server, held } = await startWith(control);
    control.empty();
    control.cut();
    await server.time.advance(2_100);
    expect(await control.floors()).toEqual(held);
  });

  it('gets what is missing or lower, and nothing else', async () => {
    const control = losableSource();
    const { server, held } = await startWith(control);
    const floors = [['pos-17', held['pos-17']!], ['kiosk', held['kiosk']! - 1], ['other', 7]] as const; // prettier-ignore
    await control.forget(floors);
    control.published.length = 0;
    await server.time.advance(30_000);
    expect(control.published.sort()).toEqual(['gone', 'kiosk']);
    expect(await control.floors()).toEqual({ ...held, other: 7 });
  });

  it('is read every 30 s, less often where that takes long', async () => {
    const control = losableSource();
    const { server } = await startWith(control);
    expect(control.reads).toBe(1);
    await server.time.advance(90_000);
    expect(control.reads).toBe(4);
    const { read } = control.source;
    control.source.read = async (sinceMs) => {
      await new Promise<void>((resolve) => server.time.schedule(resolve, 5_000));
      return read(sinceMs);
    };
    await server.time.advance(35_000);
    expect(control.reads).toBe(5);
    await server.time.advance(99_999);
    expect(control.reads).toBe(5);
    await server.time.advance(5_001);
    expect(control.reads).toBe(6);
  });
});

describe('a source that cannot be reached', () => {
  it('is asked for ever longer, logged once, and filled as soon as it answers', async () => {
    const control = losableSource();
    const { server, held } = await startWith(control);
    control.state = 'down';
    control.empty();
    control.cut();
    const before = control.reads;
    await server.time.advance(3_600_000);
    expect(control.reads - before).toBeLessThan(260);
    const detail = '{"detail":"Error"}';
    expect(said(server)).toEqual([
      `warn: the watch on generations is lost, polling goes on ${detail}`,
      `warn: the source of generations cannot be read to be compared ${detail}`,
    ]);
    control.state = 'up';
    await server.time.advance(30_000);
    expect(await control.floors()).toEqual(held);
    expect(server.log.at('info').map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        'the watch on generations stands again',
        'the source of generations can be compared again',
      ]),
    );
  });

  it.each(['down', 'hanging'] as const)('does not hinder the start when it is %s, and is told later', async (state) => {
    const control = losableSource();
    const { server, held } = await startWith(control);
    control.empty();
    control.state = state;
    let restarted: TestServer | undefined;
    const starting = server.restart().then((started) => (restarted = started));
    while (!restarted) await server.time.advance(100);
    await starting;
    expect(await control.floors()).toEqual({});
    control.state = 'up';
    await restarted.time.advance(60_000);
    expect(await control.floors()).toEqual(held);
  });

  it('is left alone after close()', async () => {
    const control = losableSource();
    const { server } = await startWith(control);
    expect(control.watches()).toBe(1);
    await server.auth.close();
    expect([control.watches(), server.time.pending]).toEqual([0, 0]);
  });
});

it('a source without watch is compared all the same', async () => {
  const control = losableSource();
  const { read, publish } = control.source;
  const server = await startServer({ generations: { read, publish } });
  const { generation } = await registerClient(server);
  control.empty();
  await server.time.advance(30_000);
  expect(await control.floors()).toEqual({ 'pos-17': generation });
});

it('a change that is on its way to the source is not taken for a loss', async () => {
  const control = losableSource();
  const { server } = await startWith(control);
  let release: (() => void) | undefined;
  const { publish } = control.source;
  control.source.publish = async (...floor) => {
    await new Promise<void>((resolve) => (release = resolve));
    return publish(...floor);
  };
  const changing = server.post('/clients/pos-17/revoke').then(({ status }) => status);
  while (!release) await settle();
  const { reads } = control;
  while (control.reads === reads) await server.time.advance(1_000);
  expect(await changing).toBe(200);
  expect(said(server).filter((line) => line.includes('lacks'))).toEqual([]);
});
