import { equal, fail } from 'node:assert';
import { setTimeout as wait } from 'node:timers/promises';
import type { Floor } from '../../generation/source';
import { expectFloors, inTime, readFrom, TIME, watchSpy } from './harness';
import type { MergedRead, SourceCases, SourceContext } from './harness';

const RETRY_MS = 10;

/** A watch reports every move; a source recovers from a cut and stays closed. */
export const watchCases: SourceCases = {
  async 'an established watch wakes for every publish after a read'(context) {
    const spy = await watchSpy(context);
    for (let n = 0; spy && n < 5; n++) {
      const hint = spy.next();
      await context.publish('pos', TIME + n);
      await hint;
      expectFloors(await readFrom(context.source, 0), [['pos', TIME + n]], 'read(0) after a hint');
    }
    spy?.stop();
  },

  async 'a change between the watch and the first read is read or hinted'(context) {
    const spy = await watchSpy(context);
    const reading = readFrom(context.source, 0);
    // The publish may fail before this is awaited.
    reading.catch(() => undefined);
    await context.publish('pos', TIME);
    const known = (await reading).floors.get('pos') === TIME;
    if (spy && !known && spy.hints === 0) await spy.next();
    spy?.stop();
  },

  async 'a watch that was stopped does not wake again, and the others go on'(context) {
    const stopped = await watchSpy(context);
    const spy = await watchSpy(context);
    if (!stopped || !spy) return;
    stopped.stop();
    stopped.stop();
    const before = stopped.hints;
    for (let n = 0; n < 2; n++) {
      const hint = spy.next();
      await context.publish('pos', TIME + n);
      await hint;
      await readFrom(context.source, 0);
    }
    spy.stop();
    equal(stopped.hints, before, 'hints after the watch was stopped');
  },

  async 'two sources on one store see what is published through either'({ fixture, source, publish, timeoutMs }) {
    const other = await fixture.another?.();
    if (!other) return;
    try {
      const spy = await watchSpy({ source: other, timeoutMs });
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
  },

  async 'a source that was cut off rejects or is complete, and recovers by itself'(context) {
    const { fixture, source, publish } = context;
    if (!fixture.disconnect) return;
    const spy = await watchSpy(context);
    await publish('pos', TIME);
    const { nowMs } = await readFrom(source, 0);
    await publish('kiosk', TIME);
    await fixture.disconnect();
    const moved: Floor[] = [['kiosk', TIME]];
    expectFloors(await readWhenBack(context, nowMs), moved, 'read(nowMs) after the cut');
    expectFloors(await readWhenBack(context, 0), [['pos', TIME], ...moved], 'read(0) after the cut');
    const hint = spy?.losses === 0 ? spy.next() : undefined;
    await publish('pos', TIME + 1);
    await hint;
    spy?.stop();
  },

  async 'close() can be repeated; afterwards a read rejects or is complete, and no watch wakes'(context) {
    const { source, publish, timeoutMs } = context;
    const spy = await watchSpy(context);
    const hint = spy?.next();
    await publish('pos', TIME);
    await hint;
    await inTime(Promise.all([source.close?.(), source.close?.()]), timeoutMs, 'close() did not end');
    const before = spy?.hints;
    await inTime(Promise.resolve(source.close?.()), timeoutMs, 'close() did not end again');
    await publish('pos', TIME + 1).catch(() => undefined);
    const read = await tryToRead(context, 0, 'a read after close() did not end');
    if (read) expectFloors(read, [['pos', Math.max(TIME, read.floors.get('pos') ?? 0)]], 'read(0) after close()');
    spy?.stop();
    equal(spy?.hints, before, 'hints after close()');
  },
};

/** Reads until a read resolves: a source on a real store needs real time to reconnect. */
async function readWhenBack(context: SourceContext, sinceMs: number): Promise<MergedRead> {
  const deadlineMs = performance.now() + context.timeoutMs;
  while (performance.now() < deadlineMs) {
    const read = await tryToRead(context, sinceMs, 'a read after the cut did not end');
    if (read) return read;
    await wait(RETRY_MS);
  }
  fail(`every read after the cut rejected for ${context.timeoutMs} ms`);
}

/** `undefined` when the read rejects; a result must have the right shape. */
async function tryToRead(
  { source, timeoutMs }: SourceContext,
  sinceMs: number,
  failure: string,
): Promise<MergedRead | undefined> {
  const snapshot = await inTime(
    source.read(sinceMs).catch(() => undefined),
    timeoutMs,
    failure,
  );
  return snapshot && readFrom({ read: () => Promise.resolve(snapshot) }, sinceMs);
}
