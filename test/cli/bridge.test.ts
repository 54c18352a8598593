import { startBridge } from '../../src/cli/bridge/bridge';
import type { Bridge, BridgeOptions, BridgeState, CredentialChange } from '../../src/cli/bridge/bridge';
import { START } from '../gate/generation/fixtures';
import { Scene } from '../gate/generation/scene';

/** An authorization server that knows its changes by position, and a bridge to a log. */
class BridgeScene extends Scene {
  readonly changes: CredentialChange[] = [change('till-1', -10)];
  readonly saved: BridgeState<number>[] = [];
  /** Cursors that were asked for. */
  readonly asked: (number | undefined)[] = [];
  down = false;

  start(options: Partial<BridgeOptions<number>> = {}): Bridge {
    const { source } = this.link;
    return startBridge<number>({
      source,
      reports: {
        read: (cursor) => {
          this.asked.push(cursor);
          if (this.down) return Promise.reject(new Error('down'));
          return Promise.resolve({ changes: this.changes.slice(cursor ?? 0), cursor: this.changes.length });
        },
      },
      state: {
        load: () => Promise.resolve(this.saved.at(-1)),
        save: (state) => Promise.resolve(void this.saved.push(state)),
      },
      logger: this.log,
      clock: this.time.clock,
      schedule: this.time.schedule,
      ...options,
    });
  }

  get floors(): unknown {
    return Object.fromEntries(this.engine.state.entries);
  }
}

const change = (clientId: string, at: number): CredentialChange => ({ clientId, changedAtMs: START + at });

let scene: BridgeScene;
beforeEach(() => void (scene = new BridgeScene()));

it('publishes each change, so that a token issued in the same millisecond is refused too', async () => {
  const bridge = scene.start();
  await scene.time.advance(0);
  await bridge.ready();
  expect(scene.floors).toEqual({ 'till-1': START - 9 });
  scene.changes.push(change('till-2', 500));
  await scene.time.advance(1_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9, 'till-2': START + 501 });
  expect(bridge.status()).toEqual({ state: 'following', published: 2, pending: 0, ageMs: 0 });
  expect(scene.saved.at(-1)).toEqual({
    cursor: 2,
    changes: [
      ['till-1', START - 9],
      ['till-2', START + 501],
    ],
  });
});

it('saves a change before it is published, and nothing while there is nothing new', async () => {
  const bridge = scene.start();
  await scene.time.advance(0);
  scene.link.cut = true;
  scene.changes.push(change('till-2', 0));
  await scene.time.advance(10_000);
  expect(scene.saved).toHaveLength(2);
  expect(scene.saved[1]?.changes).toContainEqual(['till-2', START + 1]);
  expect(bridge.status()).toMatchObject({ state: 'failing', pending: 1, lastError: 'cut' });
  bridge.close();
  scene.link.cut = false;
  const next = scene.start();
  await scene.time.advance(1_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9, 'till-2': START + 1 });
  expect(scene.asked.at(-1)).toBe(2);
  next.close();
});

it('publishes a change that could not be saved at first, as soon as it is saved', async () => {
  const save = jest.fn((state: BridgeState<number>) => Promise.resolve(void scene.saved.push(state)));
  const bridge = scene.start({ state: { load: () => Promise.resolve(undefined), save } });
  await scene.time.advance(1_000);
  save.mockRejectedValueOnce(new Error('disk full'));
  scene.changes.push(change('till-2', 0));
  await scene.time.advance(3_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9, 'till-2': START + 1 });
  expect(bridge.status()).toMatchObject({ state: 'following', published: 2 });
  bridge.close();
});

it('publishes every change again to a log that was wiped, of clients that the server has forgotten too', async () => {
  scene.start();
  await scene.time.advance(1_000);
  scene.changes.fill(change('unknown', -5));
  scene.engine.wipe();
  await scene.time.advance(3_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9 });
});

it('does so after a restart too, where the log was wiped meanwhile', async () => {
  const bridge = scene.start();
  await scene.time.advance(1_000);
  bridge.close();
  scene.engine.wipe();
  scene.changes.fill(change('unknown', -5));
  scene.start();
  await scene.time.advance(1_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9 });
});

it('tells a change that cannot be published, and publishes the others', async () => {
  scene.changes.unshift(change('', 0), change('a\0b', 0), change('*', -5), change('late', 3_600_000));
  const bridge = scene.start({
    reports: { read: () => Promise.resolve({ changes: scene.changes, cursor: 1, problems: ['gone'] }) },
  });
  await scene.time.advance(0);
  expect(scene.floors).toEqual({ 'till-1': START - 9 });
  expect(bridge.status()).toMatchObject({ state: 'following', published: 1 });
  expect(scene.log.lines.filter((line) => line.startsWith('warn'))).toEqual(
    Array(5).fill('warn: a change of a credential cannot be published'),
  );
});

it('publishes a change that is repeated once', async () => {
  const bridge = scene.start({ reports: { read: () => Promise.resolve({ changes: scene.changes, cursor: 1 }) } });
  await scene.time.advance(10_000);
  expect(bridge.status().published).toBe(1);
  expect(scene.engine.state.entries).toHaveLength(1);
});

it('publishes a change that appears as two events once', async () => {
  const bridge = scene.start();
  await scene.time.advance(0);
  scene.changes.push(change('till-2', 503), change('till-2', 500));
  await scene.time.advance(1_000);
  expect(bridge.status()).toMatchObject({ published: 2, pending: 0 });
  expect(scene.floors).toEqual({ 'till-1': START - 9, 'till-2': START + 504 });
  expect(scene.log.lines.filter((line) => line.includes('published:'))).toHaveLength(2);
  bridge.close();
});

it('forgets changes that no token can need any more', async () => {
  const bridge = scene.start({ maxTokenAgeSeconds: 1, pollMs: 60_000 });
  await scene.time.advance(0);
  scene.time.step(3_600_000 + 2_000);
  scene.changes.push(change('till-2', 3_602_000));
  await scene.time.advance(60_000);
  expect(scene.saved.at(-1)?.changes).toEqual([['till-2', START + 3_602_001]]);
  // A clock that is ahead by days makes no change old.
  scene.time.step(48 * 3_600_000);
  scene.changes.push(change('till-3', 3_602_500));
  await scene.time.advance(60_000);
  expect(scene.saved.at(-1)?.changes.map(([clientId]) => clientId)).toEqual(['till-2', 'till-3']);
  bridge.close();
});

it('loses no change while its clock is slow: it is published when its time has come, also after a restart', async () => {
  const first = scene.start();
  await scene.time.advance(0);
  scene.changes.push(change('till-2', 1_800_000), change('till-3', 500));
  await scene.time.advance(2_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9, 'till-3': START + 501 });
  expect(first.status()).toMatchObject({ pending: 1, published: 2 });
  // Who started with this log could not know it, and refuses.
  const { completeMs } = scene.engine.state.mark!;
  await scene.time.advance(2_000);
  expect(scene.engine.state.mark!.completeMs).toBe(completeMs);
  first.close();
  const second = scene.start();
  await scene.time.advance(1_000);
  scene.time.step(1_800_000);
  await scene.time.advance(3_000);
  expect(scene.floors).toEqual({ 'till-1': START - 9, 'till-2': START + 1_800_001, 'till-3': START + 501 });
  expect(second.status()).toMatchObject({ pending: 0 });
  expect(scene.saved.at(-1)?.cursor).toBe(3);
  second.close();
});

it('says once that the reports cannot be read, retries with pauses, and says when it can be again', async () => {
  const bridge = scene.start();
  await scene.time.advance(1_000);
  scene.down = true;
  await scene.time.advance(120_000);
  expect(bridge.status()).toMatchObject({ state: 'failing', lastError: 'Error' });
  const before = scene.asked.length;
  await scene.time.advance(60_000);
  expect(scene.asked.length - before).toBeLessThanOrEqual(3);
  scene.down = false;
  await scene.time.advance(31_000);
  expect(bridge.status().state).toBe('following');
  expect(scene.log.lines.filter((line) => !line.includes('published:'))).toEqual([
    'info: following the changes of credentials',
    'warn: changes of credentials cannot be followed, it is retried',
    'info: following the changes of credentials',
  ]);
});

it.each([
  [{ reports: {} }, 'option "reports" must be reports of changes'],
  [{ state: {} }, 'option "state" must be { load, save }'],
  [{ source: { mark: true } }, 'option "source" must be a generation source with append()'],
  [{ pollMs: 0 }, 'option "pollMs" must be'],
  [{ poll: 1 }, 'unknown option "poll"'],
])('refuses %j', (options, message) => {
  expect(() => scene.start(options as never)).toThrow(`startBridge(): ${message}`);
});
