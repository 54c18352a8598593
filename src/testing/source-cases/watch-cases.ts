import { equal, fail } from 'node:assert';
import { setTimeout as wait } from 'node:timers/promises';
import type { Floor, GenerationSource } from '../../generation/source';
import { expectFloors, inTime, readFrom, watchSpy } from './harness';
import type { MergedRead, SourceContext, SourceTest } from './harness';

const TIME = 1_800_000_000_000;
const RETRY_MS = 10;

/** A watch reports every move; a source recovers from a cut and stays closed. */
export const watchCases: readonly SourceTest[] = [
  { name: 'an established watch wakes for every publish after a read', test: watchWakes },
  { name: 'a change between the watch and the first read is read or hinted', test: changeBeforeTheFirstReadIsNotLost },
  { name: 'a watch that was stopped does not wake again, and the others go on', test: stoppedWatchStaysSilent },
  { name: 'two sources on one store see what is published through either', test: sourcesShareTheirStore },
  { name: 'a source that was cut off rejects or is complete, and recovers by itself', test: recoversAfterCut },
  { name: 'close() can be repeated; afterwards a read rejects or is complete, and no watch wakes', test: staysClosed },
];

async function watchWakes({ source, publish, timeoutMs }: SourceContext): Promise<void> {
  const spy = await watchSpy(source, timeoutMs);
  if (!spy) return;
  for (let n = 0; n < 5; n++) {
    const hint = spy.next();
    await publish('pos', TIME + n);
    await hint;
    expectFloors(await readFrom(source, 0), [['pos', TIME + n]], 'read(0) after a hint');
  }
  spy.stop();
}

async function changeBeforeTheFirstReadIsNotLost({ source, publish, timeoutMs }: SourceContext): Promise<void> {
  const spy = await watchSpy(source, timeoutMs);
  const reading = readFrom(source, 0);
  // The publish may fail before this is awaited.
  reading.catch(() => undefined);
  await publish('pos', TIME);
  const known = (await reading).floors.get('pos') === TIME;
  if (spy && !known && spy.hints === 0) await spy.next();
  spy?.stop();
}

async function stoppedWatchStaysSilent({ source, publish, timeoutMs }: SourceContext): Promise<void> {
  const stopped = await watchSpy(source, timeoutMs);
  const spy = await watchSpy(source, timeoutMs);
  if (!stopped || !spy) return;
  stopped.stop();
  stopped.stop();
  const before = stopped.hints;
  for (let n = 0; n < 2; n++) {
    const hint = spy.next();
    await publish('pos', TIME + n);
    await hint;
    await readFrom(source, 0);
  }
  spy.stop();
  equal(stopped.hints, before, 'hints after the watch was stopped');
}

async function sourcesShareTheirStore({ fixture, source, publish, timeoutMs }: SourceContext): Promise<void> {
  const other = await fixture.another?.();
  if (!other) return;
  try {
    const spy = await watchSpy(other, timeoutMs);
    const { nowMs } = await readFrom(other, 0);
    const hint = spy?.next();
    await publish('pos', TIME);
    expectFloors(await readFrom(other, 0), [['pos', TIME]], 'read(0) of the other source');
    expectFloors(await readFrom(other, nowMs), [['pos', TIME]], 'read(nowMs) of the other source');
    await hint;
    await other.publish?.('pos', TIME + 1);
    if (other.publish) expectFloors(await readFrom(source, 0), [['pos', TIME + 1]], 'read(0)');
    spy?.stop();
  } finally {
    await inTime(Promise.resolve(other.close?.()), timeoutMs, 'close() of the other source did not end');
  }
}

async function recoversAfterCut({ fixture, source, publish, timeoutMs }: SourceContext): Promise<void> {
  if (!fixture.disconnect) return;
  const spy = await watchSpy(source, timeoutMs);
  await publish('pos', TIME);
  const { nowMs } = await readFrom(source, 0);
  await publish('kiosk', TIME);
  await fixture.disconnect();
  const moved: Floor[] = [['kiosk', TIME]];
  expectFloors(await readWhenBack(source, nowMs, timeoutMs), moved, 'read(nowMs) after the cut');
  expectFloors(await readWhenBack(source, 0, timeoutMs), [['pos', TIME], ...moved], 'read(0) after the cut');
  const hint = spy?.losses === 0 ? spy.next() : undefined;
  await publish('pos', TIME + 1);
  await hint;
  spy?.stop();
}

async function staysClosed({ source, publish, timeoutMs }: SourceContext): Promise<void> {
  const spy = await watchSpy(source, timeoutMs);
  const hint = spy?.next();
  await publish('pos', TIME);
  await hint;
  await inTime(Promise.all([source.close?.(), source.close?.()]), timeoutMs, 'close() did not end');
  const before = spy?.hints;
  await inTime(Promise.resolve(source.close?.()), timeoutMs, 'close() did not end again');
  await publish('pos', TIME + 1).catch(() => undefined);
  const read = await inTime(tryToRead(source, 0), timeoutMs, 'a read after close() did not end');
  if (read) expectFloors(read, [['pos', Math.max(TIME, read.floors.get('pos') ?? 0)]], 'read(0) after close()');
  spy?.stop();
  equal(spy?.hints, before, 'hints after close()');
}

/** Reads until a read resolves: a source on a real store needs real time to reconnect. */
async function readWhenBack(source: GenerationSource, sinceMs: number, timeoutMs: number): Promise<MergedRead> {
  const deadlineMs = performance.now() + timeoutMs;
  while (performance.now() < deadlineMs) {
    const read = await inTime(tryToRead(source, sinceMs), timeoutMs, 'a read after the cut did not end');
    if (read) return read;
    await wait(RETRY_MS);
  }
  fail(`every read after the cut rejected for ${timeoutMs} ms`);
}

/** `undefined` when the read rejects; a result must have the right shape. */
async function tryToRead(source: GenerationSource, sinceMs: number): Promise<MergedRead | undefined> {
  const snapshot = await source.read(sinceMs).catch(() => undefined);
  return snapshot && readFrom({ read: () => Promise.resolve(snapshot) }, sinceMs);
}
