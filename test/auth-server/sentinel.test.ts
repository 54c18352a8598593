import { memoryGenerations } from '../../src/generation';
import type { Floor, GenerationSource } from '../../src/generation';
import { settle } from '../support/fake-time';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

/** A source in memory with a sentinel, which can lose everything, be restored, be down, and hang. */
function losableSource() {
  let floors = memoryGenerations();
  let sentinel: number | undefined;
  const control = {
    state: 'up' as 'up' | 'down' | 'hanging',
    published: [] as string[],
    source: {
      read: (sinceMs: number) => respond(() => floors.read(sinceMs)),
      publish: (clientId: string, generation: number) => {
        control.published.push(clientId);
        return respond(() => floors.publish(clientId, generation));
      },
      sentinel: {
        read: () => respond(() => Promise.resolve(sentinel)),
        write: (value: number) =>
          respond(() => {
            sentinel = Math.max(value, sentinel ?? 0);
            return Promise.resolve();
          }),
      },
    } satisfies GenerationSource,
    sentinel: () => sentinel,
    floors: async (): Promise<Record<string, number>> => Object.fromEntries((await floors.read(0)).floors),
    /** Replaces the whole store by a dump; without arguments it is wiped. */
    async restore(dump: readonly Floor[] = [], value?: number) {
      floors = memoryGenerations();
      sentinel = value;
      for (const [clientId, generation] of dump) await floors.publish(clientId, generation);
      control.published.length = 0;
    },
  };
  function respond<Value>(work: () => Promise<Value>): Promise<Value> {
    if (control.state === 'down') return Promise.reject(new Error('postgres://tills:geheim@host is down'));
    return control.state === 'hanging' ? new Promise(() => {}) : work();
  }
  return control;
}

type Source = ReturnType<typeof losableSource>;

/** A token server with two clients and a deleted one, and the floors that it has published. */
async function startWith(control: Source): Promise<{ server: TestServer; held: Record<string, number> }> {
  const server = await startServer({ generationSource: control.source });
  await registerClient(server);
  await registerClient(server, { client_id: 'kiosk' });
  await registerClient(server, { client_id: 'gone' });
  await server.delete('/clients/gone');
  await server.time.advance(1_000);
  return { server, held: await control.floors() };
}

function logged(server: TestServer): string[] {
  const entries = server.log.entries.filter(({ message }) => message !== 'token server request');
  return entries.map(({ level, message, fields }) => `${level}: ${message} ${JSON.stringify(fields)}`);
}

it('the sentinel is written at the start and rises every second', async () => {
  const control = losableSource();
  const { server } = await startWith(control);
  for (let second = 0; second < 3; second++) {
    const before = control.sentinel()!;
    await server.time.advance(1_000);
    expect(control.sentinel()).toBeGreaterThan(before);
  }
  // Also while the clock stands still or steps back.
  const before = control.sentinel()!;
  server.time.step(-3_600_000);
  await server.time.advance(2_000);
  expect(control.sentinel()).toBeGreaterThan(before);
  expect(logged(server)).toEqual([]);
});

it('a source that was wiped has everything again within 2 s, and one line in the log', async () => {
  const control = losableSource();
  const { server, held } = await startWith(control);
  await control.restore();
  await server.time.advance(2_000);
  expect(Object.keys(held)).toEqual(['pos-17', 'kiosk', 'gone']);
  expect(await control.floors()).toEqual(held);
  expect(control.sentinel()).toBeGreaterThan(0);
  await server.time.advance(60_000);
  expect(logged(server)).toEqual(['warn: the source has lost generations, they are published again {"floors":3}']);
});

it('a source that was restored from an older dump gets what changed since then, and nothing else', async () => {
  const control = losableSource();
  const { server, held } = await startWith(control);
  await server.time.advance(120_000);
  const [dump, sentinel] = [Object.entries(held), control.sentinel()!];
  await server.time.advance(120_000);
  const { generation } = (await server.post('/clients/pos-17/revoke')).body;
  await server.time.advance(1_000);
  await control.restore(dump, sentinel);
  await server.time.advance(2_000);
  expect(control.published).toEqual(['pos-17']);
  expect(await control.floors()).toEqual({ ...held, 'pos-17': generation });
});

it('a source that was wiped while the token server was down is filled at the start', async () => {
  const control = losableSource();
  const { server, held } = await startWith(control);
  await server.auth.close();
  await control.restore();
  const again = await server.restart();
  expect(await control.floors()).toEqual(held);
  expect(logged(again)).toEqual([]);
});

it('a restart publishes only what changed since the sentinel', async () => {
  const control = losableSource();
  const { server } = await startWith(control);
  await server.time.advance(120_000);
  control.published.length = 0;
  const again = await server.restart();
  expect(control.published).toEqual([]);
  await again.time.advance(1_000);
  await again.post('/clients/kiosk/revoke');
  // Its floor reaches the disk, but not the source.
  control.state = 'down';
  await again.post('/clients/pos-17/revoke');
  control.state = 'up';
  control.published.length = 0;
  await again.restart();
  expect(control.published.sort()).toEqual(['kiosk', 'pos-17']);
});

it('a sentinel in the future says nothing: everything is published', async () => {
  const control = losableSource();
  const { server, held } = await startWith(control);
  await control.restore([], server.time.clock() + 3_600_000);
  await server.restart();
  expect(await control.floors()).toEqual(held);
});

it('the sentinel does not rise while a floor is pending', async () => {
  const control = losableSource();
  const { server } = await startWith(control);
  const { publish } = control.source;
  control.source.publish = () => Promise.reject(new Error('refused'));
  await server.post('/clients/pos-17/revoke');
  const before = control.sentinel();
  await server.time.advance(10_000);
  expect(control.sentinel()).toBe(before);
  control.source.publish = publish;
  await server.time.advance(1_000);
  expect(control.sentinel()).toBeGreaterThan(before!);
  expect(await control.floors()).toMatchObject({ 'pos-17': (await server.get('/clients/pos-17')).body.generation });
});

describe('a source that cannot be reached', () => {
  it('is logged once, and filled within 2 s when it is back', async () => {
    const control = losableSource();
    const { server, held } = await startWith(control);
    control.state = 'down';
    await server.time.advance(600_000);
    expect(logged(server)).toEqual([
      'warn: the source of generations cannot be reached, it is retried {"detail":"Error"}',
    ]);
    await control.restore();
    control.state = 'up';
    await server.time.advance(2_000);
    expect(await control.floors()).toEqual(held);
    expect(logged(server).slice(1)).toEqual([
      'warn: the source has lost generations, they are published again {"floors":3}',
      'info: the source of generations can be reached again {}',
    ]);
  });

  it.each(['down', 'hanging'] as const)(
    'does not prevent the start when it is %s, and is filled later',
    async (state) => {
      const control = losableSource();
      const { server, held } = await startWith(control);
      await control.restore();
      control.state = state;
      let restarted: TestServer | undefined;
      const starting = server.restart().then((started) => (restarted = started));
      while (!restarted) await server.time.advance(100);
      await starting;
      expect(await control.floors()).toEqual({});
      control.state = 'up';
      await restarted.time.advance(4_000);
      expect(await control.floors()).toEqual(held);
    },
  );

  it('is left alone after close()', async () => {
    const control = losableSource();
    const { server } = await startWith(control);
    await server.auth.close();
    const before = control.sentinel();
    await server.time.advance(10_000);
    await settle();
    expect([control.sentinel(), server.time.pending]).toEqual([before, 0]);
  });
});

it('a source without a sentinel gets everything at the start, and no timer', async () => {
  const control = losableSource();
  const { server, held } = await startWith(control);
  await control.restore();
  const { read, publish } = control.source;
  const again = await server.restart({ generationSource: { read, publish } });
  expect(await control.floors()).toEqual(held);
  expect(again.time.pending).toBe(0);
});
