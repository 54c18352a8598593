import type { GenerationSource } from '../../src';
import { createPublisher } from '../../src/auth-server/publisher';
import { fakeTime, settle } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import { closeAll, registerClient, startServer } from './fixtures';

afterEach(closeAll);

/** A source that fails for as long as `broken` says so. */
function fragileSource() {
  const published: [string, number][] = [];
  const source = {
    broken: undefined as (() => Promise<void>) | undefined,
    published,
    read: () => Promise.reject(new Error('not asked')),
    async publish(clientId: string, generation: number) {
      if (source.broken) await source.broken();
      published.push([clientId, generation]);
    },
  };
  return source satisfies GenerationSource;
}

const refuse = (): Promise<void> => Promise.reject(new Error('down'));
const hang = (): Promise<void> => new Promise(() => {});

it('a source that is down does not fail the change, and is told again until it answers', async () => {
  const generations = fragileSource();
  const server = await startServer({ generations });
  const { generation } = await registerClient(server);
  generations.broken = refuse;
  expect((await server.post('/clients/pos-17/revoke')).status).toBe(200);
  expect((await server.post('/clients/pos-17/revoke')).status).toBe(200);
  expect(server.log.at('warn').map(({ fields }) => fields)).toEqual([
    { owed: 1, failures: 1, error: 'Error: down' },
    { owed: 1, failures: 2, error: 'Error: down' },
  ]);
  await server.time.advance(5_000);
  generations.broken = undefined;
  expect(generations.published).toEqual([['pos-17', generation]]);
  await server.time.advance(30_000);
  expect(generations.published).toEqual([
    ['pos-17', generation],
    ['pos-17', generation + 2],
  ]);
  await server.time.advance(60_000);
  expect(generations.published).toHaveLength(2);
});

it('a source that hangs is waited for 2 s, no longer', async () => {
  const time = fakeTime();
  const source = fragileSource();
  source.broken = hang;
  const log = recordingLogger();
  const publisher = createPublisher({ source, schedule: time.schedule, logger: log });
  let answered = false;
  void publisher.publish([['pos-17', 1]]).then(() => (answered = true));
  await time.advance(1_999);
  expect(answered).toBe(false);
  await time.advance(1);
  expect(answered).toBe(true);
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
  const publisher = createPublisher({ source, schedule: time.schedule, logger: recordingLogger() });
  await publisher.publish([['pos-17', 1]]);
  expect(time.pending).toBe(1);
  publisher.close();
  await settle();
  expect(time.pending).toBe(0);
});
