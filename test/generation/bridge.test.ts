import { memoryGenerations, startBridge } from '../../src/generation';
import type { Bridge, BridgeOptions, BridgeState, CredentialChange, GenerationSource } from '../../src/generation';
import { fakeTime } from '../support/fake-time';
import type { FakeTime } from '../support/fake-time';
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

/** A source that can lose everything, and that refuses what a test says. */
function losingSource(): { source: GenerationSource; lose: () => void; refuse: (reason?: Error) => void } {
  const floors = new Map<string, number>();
  let [sentinel, refusal]: [number | undefined, Error | undefined] = [undefined, undefined];
  const source: GenerationSource = {
    read: () => Promise.resolve({ floors: [...floors], nowMs: START_MS }),
    publish: (clientId, floor) =>
      refusal ? Promise.reject(refusal) : Promise.resolve(void floors.set(clientId, floor)),
    sentinel: {
      read: () => Promise.resolve(sentinel),
      write: (generation) => Promise.resolve(void (sentinel = generation)),
    },
  };
  function lose(): void {
    floors.clear();
    sentinel = undefined;
  }
  return { source, lose, refuse: (reason) => void (refusal = reason) };
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
