import type { GenerationSource } from '../../src/generation';
import { createPublisher } from '../../src/auth-server/generations/publisher';
import { fakeTime, settle } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

/** A source that fails for as long as `broken` says so. */
function fragileSource() {
  const published: [string, number][] = [];
  const source = {
    broken: undefined as (() => Promise<void>) | undefined,
    published,
    read: () => Promise.resolve({ floors: published, nowMs: 0 }),
    async publish(clientId: string, generation: number) {
      if (source.broken) await source.broken();
      published.push([clientId, generation]);
    },
  };
  return source satisfies GenerationSource;
}

const down = Object.assign(new Error('redis://:geheim@host is down'), { code: 'ECONNREFUSED' });
const refuse = (): Promise<void> => Promise.reject(down);
const hang = (): Promise<void> => new Promise(() => {});

it('a source that is down does not fail the change, and gets the floor as soon as it responds', async () => {
  const generations = fragileSource();
  const server = await startServer({ generationSource: generations });
  const { generation } = await registerClient(server);
  generations.broken = refuse;
  expect((await server.post('/clients/pos-17/revoke')).status).toBe(200);
  expect((await server.post('/clients/pos-17/revoke')).status).toBe(200);
  await server.time.advance(5_000);
  // Once per outage, and nothing of what a store's client writes into its messages.
  expect(server.log.at('warn')).toEqual([
    {
      level: 'warn',
      fields: { pending: 1, detail: 'Error (ECONNREFUSED)' },
      message: 'generations could not be published, they are retried until the source takes them',
    },
  ]);
  generations.broken = undefined;
  expect(generations.published).toEqual([['pos-17', generation]]);
  await server.time.advance(30_000);
  expect(generations.published).toEqual([
    ['pos-17', generation],
    ['pos-17', generation + 2],
  ]);
  await server.time.advance(60_000);
  expect(generations.published).toHaveLength(2);
  expect(server.log.at('info').filter(({ message }) => message !== 'token server request')).toEqual([
    {
      level: 'info',
      fields: { pending: 0, failures: expect.any(Number) },
      message: 'generations can be published again',
    },
  ]);
});

it('a source that hangs is waited for 2 s, no longer', async () => {
  const time = fakeTime();
  const source = fragileSource();
  source.broken = hang;
  const log = recordingLogger();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: log });
  let responded = false;
  void publisher.publish([['pos-17', 1]]).then(() => (responded = true));
  await time.advance(1_999);
  expect(responded).toBe(false);
  await time.advance(1);
  expect(responded).toBe(true);
  expect(log.at('warn')).toHaveLength(1);
  source.broken = undefined;
  await time.advance(250);
  expect(source.published).toEqual([['pos-17', 1]]);
  publisher.close();
});

it('a source that throws counts as one that rejects', async () => {
  const time = fakeTime();
  const source = {
    ...fragileSource(),
    publish: () => {
      throw new Error('broken');
    },
  };
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  await publisher.publish([['pos-17', 1]]);
  expect(time.pending).toBe(1);
  publisher.close();
  await settle();
  expect(time.pending).toBe(0);
});

it('tells many floors in batches, and stops at the first that fails', async () => {
  const time = fakeTime();
  const [asked, under]: [string[], number[]] = [[], []];
  let [open, broken] = [0, true];
  const source = {
    ...fragileSource(),
    async publish(clientId: string) {
      asked.push(clientId);
      under.push(++open);
      await Promise.resolve();
      open--;
      if (broken && clientId === 'client-1200') throw new Error('refused');
    },
  };
  const floors = Array.from({ length: 3_500 }, (_, n): [string, number] => [`client-${n}`, n + 1]);
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  await publisher.publish(floors);
  expect([asked.length, Math.max(...under)]).toEqual([2_000, 1_000]);
  const pending = (...ids: string[]): boolean[] => ids.map((id) => publisher.isPending(id));
  expect(pending('client-999', 'client-1200', 'client-3499')).toEqual([false, true, true]);

  // What is refused does not stand in the way of the rest.
  await time.advance(30_000);
  expect(pending('client-1200', 'client-3499')).toEqual([true, false]);
  broken = false;
  await time.advance(60_000);
  expect(publisher.isPending('client-1200')).toBe(false);
  expect(time.pending).toBe(0);
});

it('a change that gets through brings all pending floors after it', async () => {
  const time = fakeTime();
  const source = fragileSource();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  source.broken = refuse;
  for (let n = 0; n < 20; n++) await publisher.publish([[`client-${n}`, 1]]);
  source.broken = undefined;
  await publisher.publish([['pos-17', 2]]);
  expect(source.published).toEqual([['pos-17', 2]]);
  await time.advance(0);
  expect(source.published).toHaveLength(21);
  expect(time.pending).toBe(0);
});

it('a late, lower publication does not lower a pending floor', async () => {
  const time = fakeTime();
  const source = fragileSource();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  source.broken = refuse;
  await publisher.publish([['pos-17', 5]]);
  await publisher.publish([['pos-17', 3]]);
  source.broken = undefined;
  await time.advance(30_000);
  expect(source.published).toEqual([['pos-17', 5]]);
  expect(publisher.isPending()).toBe(false);
});

it('a floor that rises while its publication is under way stays pending', async () => {
  const time = fakeTime();
  const source = fragileSource();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  let release = (): void => {};
  source.broken = () => new Promise((resolve) => (release = resolve));
  const first = publisher.publish([['pos-17', 1]]);
  await settle();
  const finishFirst = release;
  source.broken = refuse;
  await publisher.publish([['pos-17', 2]]);
  finishFirst();
  await first;
  expect(publisher.isPending('pos-17')).toBe(true);
  source.broken = undefined;
  await time.advance(30_000);
  expect(source.published.at(-1)).toEqual(['pos-17', 2]);
});

it('is done once the source has taken everything: no further attempt is planned', async () => {
  const time = fakeTime();
  const source = fragileSource();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  source.broken = refuse;
  await publisher.publish([['pos-17', 1]]);
  source.broken = undefined;
  await publisher.publish([['pos-17', 2]]);
  expect([source.published, publisher.isPending(), time.pending]).toEqual([[['pos-17', 2]], false, 0]);
});

it('a publisher that is closed during an attempt or an outage plans and says nothing more', async () => {
  const time = fakeTime();
  const source = fragileSource();
  const log = recordingLogger();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: log });
  let fail = (): void => {};
  source.broken = () => new Promise((_, reject) => (fail = () => reject(down)));
  const publishing = publisher.publish([['pos-17', 1]]);
  await settle();
  publisher.close();
  fail();
  await publishing;
  expect(time.pending).toBe(0);
  source.broken = undefined;
  await publisher.publish([['kiosk', 1]]);
  expect([publisher.isPending('kiosk'), log.at('info')]).toEqual([false, []]);
});

it('a closed publisher sends nothing more', async () => {
  const time = fakeTime();
  const source = fragileSource();
  const publisher = createPublisher({ generationSource: source, schedule: time.schedule, logger: recordingLogger() });
  publisher.close();
  await publisher.publish([['pos-17', 1]]);
  expect([source.published, time.pending]).toEqual([[], 0]);
});

it.each([
  ['PATCH', (server: TestServer) => server.patch('/clients/pos-17', { description: 'new' })],
  ['revoke', (server: TestServer) => server.post('/clients/pos-17/revoke')],
  ['a rotation', (server: TestServer) => server.post('/clients/pos-17/secrets')],
  ['DELETE', (server: TestServer) => server.delete('/clients/pos-17')],
  ['a registration', (server: TestServer) => server.post('/clients', { client_id: 'new', scope: 'orders:read' })],
])('%s is responded to only after its floor is published', async (_name, change) => {
  const generations = fragileSource();
  const server = await startServer({ generationSource: generations });
  await registerClient(server);
  let release: (() => void) | undefined;
  generations.broken = () => new Promise<void>((resolve) => (release = resolve));
  let responded = false;
  const changing = change(server).then(({ status }) => ((responded = true), status));
  while (!release) await settle();
  for (let turn = 0; turn < 20; turn++) await settle();
  expect(responded).toBe(false);
  release();
  expect(await changing).toBeLessThan(300);
  expect(generations.published).toHaveLength(2);
});
