import { memoryGenerations, startBridge } from '../../src/generation';
import type { Bridge, BridgeOptions, BridgeState, CredentialChange, GenerationSource } from '../../src/generation';
import { fakeTime } from '../support/fake-time';
import type { FakeTime } from '../support/fake-time';
import { losingSource } from '../support/losing-source';
import { recordingLogger } from '../support/log';
import type { RecordingLogger } from '../support/log';

const START_MS = 1_800_000_000_000;

/** An authorization server that knows its changes by position. */
interface Server {
  readonly changes: CredentialChange[];
  down: boolean;
  /** Cursors that were asked for. */
  readonly asked: (number | undefined)[];
}

interface Scene {
  readonly bridge: Bridge;
  readonly server: Server;
  readonly source: GenerationSource;
  readonly time: FakeTime;
  readonly log: RecordingLogger;
  readonly saved: BridgeState<number>[];
  /** Floors at the source. */
  readonly floors: () => Promise<unknown>;
}

const change = (clientId: string, at = 0): CredentialChange => ({ clientId, changedAtMs: START_MS + at });

function scene(options: Partial<BridgeOptions<number>> = {}, saved: BridgeState<number>[] = []): Scene {
  const server: Server = { changes: [change('till-1')], down: false, asked: [] };
  const [time, log] = [fakeTime(START_MS), recordingLogger()];
  const source = options.source ?? memoryGenerations();
  const bridge = startBridge<number>({
    feed: {
      read(cursor = 0) {
        server.asked.push(cursor);
        if (server.down) return Promise.reject(new Error('down'));
        return Promise.resolve({ changes: server.changes.slice(cursor), cursor: server.changes.length });
      },
    },
    state: {
      load: () => Promise.resolve(saved.at(-1)),
      save: (state) => Promise.resolve(void saved.push(state)),
    },
    ...{ source, logger: log, clock: time.clock, schedule: time.schedule, random: () => 0 },
    ...options,
  });
  const floors = async (): Promise<unknown> => [...(await source.read(0)).floors];
  return { bridge, server, source, time, log, saved, floors };
}

it('publishes each change as a floor that also refuses a token issued in the same millisecond', async () => {
  const { bridge, server, time, floors, saved } = scene();
  await bridge.ready();
  expect(await floors()).toEqual([['till-1', START_MS + 1]]);
  server.changes.push(change('till-2', 500));
  await time.advance(1_000);
  expect(await floors()).toContainEqual(['till-2', START_MS + 501]);
  expect([saved.at(-1), bridge.status()]).toEqual([
    { cursor: 2, sentinel: START_MS + 1_000 },
    { state: 'following', published: 2, ageMs: 0 },
  ]);
});

it('saves its position after publishing, and only when something has changed', async () => {
  const { source, refuse } = losingSource();
  refuse(new Error('full'));
  const { bridge, server, time, saved, log } = scene({ source });
  await time.advance(10_000);
  expect([saved, bridge.status().state, log.at('warn')]).toEqual([[], 'failing', [expect.anything()]]);
  refuse(undefined);
  await time.advance(30_000);
  expect(saved).toEqual([{ cursor: 1, sentinel: expect.any(Number) }]);
  expect(new Set(server.asked)).toEqual(new Set([0, 1]));
});

it('continues where an earlier process stopped', async () => {
  const { bridge, server } = scene({}, [{ cursor: 1 }]);
  await bridge.ready();
  expect([server.asked, bridge.status().published]).toEqual([[1], 0]);
});

it('publishes every change again to a source that has lost its floors', async () => {
  const { source, lose } = losingSource();
  const { bridge, server, time, floors, log } = scene({ source });
  await bridge.ready();
  await time.advance(5_000);
  lose();
  await time.advance(1_000);
  expect(await floors()).toEqual([['till-1', START_MS + 1]]);
  expect(server.asked.slice(-2)).toEqual([1, 0]);
  expect(log.at('warn')).toHaveLength(1);
});

it('does so too where the source was restored while no bridge was running', async () => {
  const { source } = losingSource();
  await source.sentinel?.write(START_MS - 5_000);
  const { bridge, server } = scene({ source }, [{ cursor: 1, sentinel: START_MS - 1_000 }]);
  await bridge.ready();
  expect([server.asked, bridge.status().published]).toEqual([[0], 1]);
});

it('raises the sentinel with every read of the feed, so that an API that starts can rely on the source', async () => {
  const { source } = losingSource();
  const { bridge, time } = scene({ source });
  await bridge.ready();
  const first = await source.sentinel?.read();
  await time.advance(1_000);
  expect(await source.sentinel?.read()).toBe((first ?? 0) + 1_000);
});

it('says once that the feed cannot be read, retries with pauses, and says when it can be again', async () => {
  const { bridge, server, time, log } = scene();
  await bridge.ready();
  server.down = true;
  await time.advance(120_000);
  expect(bridge.status()).toMatchObject({ state: 'failing', lastError: 'Error' });
  expect(log.at('warn').map(({ message }) => message)).toEqual([
    'changes of credentials cannot be followed, it is retried',
  ]);
  server.down = false;
  await time.advance(30_000);
  expect(bridge.status()).toMatchObject({ state: 'following' });
  expect(log.at('info').at(-1)?.message).toBe('following the changes of credentials');
});

it('does nothing after close()', async () => {
  const { bridge, time } = scene();
  await bridge.ready();
  bridge.close();
  expect(time.pending).toBe(0);
});

it('refuses a source that can only be read', () => {
  const source = { read: () => Promise.resolve({ floors: [], nowMs: 0 }) };
  expect(() => scene({ source })).toThrow(
    'startBridge(): option "source" can only be read, expected one with publish()',
  );
});

it('loads its position once, and keeps it while the feed fails', async () => {
  let loads = 0;
  const state = { load: () => Promise.resolve({ cursor: 1, sentinel: loads++ }), save: () => Promise.resolve() };
  const { bridge, server, time } = scene({ state });
  server.down = true;
  await time.advance(10_000);
  server.down = false;
  await time.advance(30_000);
  expect(bridge.status().state).toBe('following');
  expect([loads, new Set(server.asked)]).toEqual([1, new Set([1])]);
});

it('takes the sentinel of its position, or a higher one, for a source that has lost nothing', async () => {
  for (const found of [START_MS, START_MS + 5_000]) {
    const { source } = losingSource();
    await source.sentinel?.write(found);
    const { bridge, server, log } = scene({ source }, [{ cursor: 1, sentinel: START_MS }]);
    await bridge.ready();
    expect([server.asked, log.at('warn')]).toEqual([[1], []]);
    expect(await source.sentinel?.read()).toBe(found + 1);
  }
});

it('raises the sentinel above the one of its position while the clock has stepped back', async () => {
  const { source } = losingSource();
  const { bridge } = scene({ source }, [{ cursor: 1, sentinel: START_MS + 9_000 }]);
  await bridge.ready();
  expect(await source.sentinel?.read()).toBe(START_MS + 9_001);
});

it('says what it publishes, that it follows, and nothing while nothing happens', async () => {
  const { source } = losingSource();
  const { bridge, time, log, saved } = scene({ source });
  await bridge.ready();
  await time.advance(10_000);
  expect(log.at('info')).toEqual([
    {
      level: 'info',
      fields: { clientId: 'till-1', changedAtMs: START_MS },
      message: 'published: tokens issued before the change are refused',
    },
    { level: 'info', fields: { published: 1 }, message: 'following the changes of credentials' },
  ]);
  expect([log.at('warn'), saved.length]).toEqual([[], 1]);
});

it('works with a source that has no sentinel', async () => {
  const floors: unknown[] = [];
  const publish = (...floor: unknown[]): Promise<void> => Promise.resolve(void floors.push(floor));
  const { bridge, time, server } = scene({ source: { read: () => Promise.reject(new Error()), publish } });
  await bridge.ready();
  await time.advance(1_000);
  expect([floors, server.asked, bridge.status().state]).toEqual([[['till-1', START_MS + 1]], [0, 1], 'following']);
});

it('pauses for 1, 2, 4 s and so on up to 30 s after failures, and for pollMs otherwise', async () => {
  const { bridge, server, time } = scene({ pollMs: 250 });
  expect(bridge.status()).toEqual({ state: 'starting', published: 0 });
  await bridge.ready();
  await time.advance(250);
  expect(server.asked).toHaveLength(2);
  server.down = true;
  await time.advance(250);
  for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    const before = server.asked.length;
    await time.advance(pauseMs - 1);
    expect(server.asked).toHaveLength(before);
    await time.advance(1);
    expect(server.asked).toHaveLength(before + 1);
  }
});

it('tells the age of its last complete read, and why the latest failed', async () => {
  const { bridge, server, time } = scene();
  await bridge.ready();
  await time.advance(400);
  expect(bridge.status()).toEqual({ state: 'following', published: 1, ageMs: 400 });
  server.down = true;
  await time.advance(600);
  expect(bridge.status()).toEqual({ state: 'failing', published: 1, ageMs: 1_000, lastError: 'Error' });
  server.down = false;
  await time.advance(1_000);
  expect(bridge.status()).toEqual({ state: 'following', published: 1, ageMs: 0 });
});

it('gives up on a source that does not respond', async () => {
  const { source } = losingSource();
  const { bridge, time } = scene({ source: { ...source, publish: () => new Promise(() => undefined) } });
  await time.advance(5_000);
  expect(bridge.status()).toMatchObject({ state: 'failing', lastError: 'no response within 5000 ms' });
});

it('reads no more after it was closed during a read', async () => {
  const { bridge, time, server } = scene();
  bridge.close();
  await time.advance(60_000);
  expect([server.asked.length, time.pending]).toEqual([1, 0]);
});
