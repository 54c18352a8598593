import { settle } from '../../support/fake-time';
import { fakeSource } from './fake';
import type { FakeClient, FakeSource } from './fake';

const CHANNEL = 'tillgate_generations';
const BEAT_MS = 15_000;

interface Watched extends FakeSource {
  readonly client: FakeClient;
  readonly wake: jest.Mock;
  readonly lost: jest.Mock;
  readonly stop: () => void;
}

async function watch(script: Parameters<typeof fakeSource>[0] = {}): Promise<Watched> {
  const fake = fakeSource(script);
  const [wake, lost] = [jest.fn(), jest.fn()];
  const stop = await fake.source.watch(wake, lost);
  return { ...fake, wake, lost, stop, client: fake.pool.clients[0] as FakeClient };
}

describe('a watch', () => {
  it('listens on a connection of its own, which is not used again', async () => {
    const { client, pool, source, stop } = await watch();
    expect(client.asked[0]).toBe(`LISTEN "${CHANNEL}"`);
    expect(client.values[1]).toEqual([CHANNEL]);
    await source.read(0);
    expect(pool.clients).toHaveLength(2);
    expect(client.released).toEqual([]);
    stop();
    stop();
    expect(client.released).toEqual([true]);
  });

  it('wakes for its own channel only, and not after it was stopped', async () => {
    const { client, wake, stop } = await watch();
    client.emit('notification', { channel: 'another' });
    expect(wake).not.toHaveBeenCalled();
    client.emit('notification', { channel: CHANNEL });
    expect(wake).toHaveBeenCalledTimes(1);
    stop();
    client.emit('notification', { channel: CHANNEL });
    expect(wake).toHaveBeenCalledTimes(1);
  });

  it('is refused with a pooler that forgets LISTEN', async () => {
    const fake = fakeSource({ 'SELECT FROM pg_listening_channels': [] });
    await expect(fake.source.watch(() => undefined)).rejects.toThrow(
      'PostgreSQL: LISTEN has no effect; connect without the',
    );
    expect(fake.pool.clients[0]?.released).toEqual([true]);
    expect(fake.time.pending).toBe(0);
  });

  it('that cannot LISTEN rejects, and its connection is not used again', async () => {
    const refusal = Object.assign(new Error('recovery'), { code: '25006' });
    const fake = fakeSource({ LISTEN: refusal });
    await expect(fake.source.watch(() => undefined)).rejects.toThrow('this server is read-only; use the URL of the');
    expect(fake.pool.clients[0]?.released).toEqual([true]);
  });

  it('says once that it is lost when its connection breaks', async () => {
    const { client, lost, time } = await watch();
    client.emit('error', Object.assign(new Error('db.example hung up'), { code: 'ECONNRESET' }));
    client.emit('error', new Error('again'));
    expect(lost.mock.calls.map(String)).toEqual(['SourceError: PostgreSQL: Error (ECONNRESET)']);
    expect(client.released).toEqual([true]);
    expect(time.pending).toBe(0);
  });

  it('asks every 15 s whether it still listens', async () => {
    const { client, time, stop } = await watch();
    await time.advance(BEAT_MS - 1);
    expect(client.asked).toHaveLength(2);
    await time.advance(1);
    expect(client.asked).toHaveLength(3);
    await time.advance(BEAT_MS);
    expect(client.asked).toHaveLength(4);
    stop();
    expect(time.pending).toBe(0);
  });

  it('is lost when the heartbeat gets no response, or one without its channel', async () => {
    let beats = 0;
    const silent = await watch({
      'SELECT FROM pg_listening_channels': () => (beats++ === 0 ? [{}] : new Promise<never>(() => undefined)),
    });
    await silent.time.advance(BEAT_MS + 4_999);
    expect(silent.lost).not.toHaveBeenCalled();
    await silent.time.advance(1);
    expect(silent.lost.mock.calls.map(String)).toEqual(['SourceError: PostgreSQL: no response within 5000 ms']);
    expect(silent.client.released).toEqual([true]);

    let asked = 0;
    const deaf = await watch({ 'SELECT FROM pg_listening_channels': () => (asked++ === 0 ? [{}] : []) });
    await deaf.time.advance(BEAT_MS);
    expect(deaf.lost.mock.calls.map(String)).toEqual([expect.stringContaining('LISTEN has no effect')]);
  });

  it('is lost when the source is closed, and stays silent from then on', async () => {
    const { client, source, lost, wake, time } = await watch();
    await source.close();
    expect(lost.mock.calls.map(String)).toEqual(['SourceError: PostgreSQL: the source is closed']);
    client.emit('notification', { channel: CHANNEL });
    await settle();
    expect(wake).not.toHaveBeenCalled();
    expect(time.pending).toBe(0);
    await expect(source.watch(wake)).rejects.toThrow('PostgreSQL: the source is closed');
  });

  it.each<[string, (settle: { resolve: (rows: unknown[]) => void; reject: (error: Error) => void }) => void]>([
    ['responds', ({ resolve }) => resolve([{}])],
    ['fails', ({ reject }) => reject(new Error('late'))],
  ])('that is stopped during a heartbeat stays so when that %s', async (_how, end) => {
    let beats = 0;
    let heartbeat: Parameters<typeof end>[0] | undefined;
    const pending = (): Promise<never> =>
      new Promise((resolve, reject) => (heartbeat = { resolve: (rows) => resolve(rows as never), reject }));
    const { time, stop, lost } = await watch({
      'SELECT FROM pg_listening_channels': () => (beats++ === 0 ? [{}] : pending()),
    });
    await time.advance(BEAT_MS);
    stop();
    end(heartbeat!);
    await settle();
    expect([time.pending, lost.mock.calls]).toEqual([0, []]);
  });

  it('that was stopped is not lost', async () => {
    const { client, lost, source, stop } = await watch();
    stop();
    client.emit('error', new Error('late'));
    await source.close();
    expect(lost).not.toHaveBeenCalled();
  });
});
