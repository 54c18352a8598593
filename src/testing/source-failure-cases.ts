import { equal, ok } from 'node:assert';
import type { Floor, GenerationSource } from '../generation/source';
import type { SourceBench, SourceTest } from './source-fixture';
import { expectFloors, inTime, readFrom, witnessOf } from './source-probe';
import type { Answer } from './source-probe';

const TIME = 1_800_000_000_000;
const RETRY_MS = 10;

/** What is cut off heals, what is closed stays closed. */
export const failureCases: readonly SourceTest[] = [
  { name: 'a source that was cut off rejects or is complete, and recovers by itself', test: cutHeals },
  {
    name: 'close() can be repeated; afterwards a read rejects or is complete, and no watch wakes',
    test: closedStaysClosed,
  },
];

async function cutHeals({ fixture, source, publish, timeoutMs }: SourceBench): Promise<void> {
  if (!fixture.disconnect) return;
  const witness = await witnessOf(source, timeoutMs);
  await publish('pos', TIME);
  const { nowMs } = await readFrom(source, 0);
  await publish('kiosk', TIME);
  await fixture.disconnect();
  const moved: Floor[] = [['kiosk', TIME]];
  expectFloors(await readWhenBack(source, nowMs, timeoutMs), moved, 'read(nowMs) after the cut');
  expectFloors(await readWhenBack(source, 0, timeoutMs), [['pos', TIME], ...moved], 'read(0) after the cut');
  const sign = witness?.losses === 0 ? witness.next() : undefined;
  await publish('pos', TIME + 1);
  await sign;
  witness?.stop();
}

async function closedStaysClosed({ source, publish, timeoutMs }: SourceBench): Promise<void> {
  const witness = await witnessOf(source, timeoutMs);
  const hint = witness?.next();
  await publish('pos', TIME);
  await hint;
  await inTime(Promise.all([source.close?.(), source.close?.()]), timeoutMs, 'close() did not end');
  const before = witness?.hints;
  await inTime(Promise.resolve(source.close?.()), timeoutMs, 'close() did not end again');
  await publish('pos', TIME + 1).catch(() => undefined);
  const answer = await inTime(attempt(source, 0), timeoutMs, 'a read after close() did not end');
  if (answer) expectFloors(answer, [['pos', Math.max(TIME, answer.floors.get('pos') ?? 0)]], 'read(0) after close()');
  witness?.stop();
  equal(witness?.hints, before, 'hints after close()');
}

/** Reads until it succeeds; every attempt that does not reject must be complete, and the caller checks the first. */
async function readWhenBack(source: GenerationSource, sinceMs: number, timeoutMs: number): Promise<Answer> {
  const untilMs = performance.now() + timeoutMs;
  while (performance.now() < untilMs) {
    const answer = await inTime(attempt(source, sinceMs), timeoutMs, 'a read after the cut did not end');
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  ok(false, `every read after the cut rejected for ${timeoutMs} ms`);
}

/** `undefined` when the read rejects; what it answers must have its shape. */
async function attempt(source: GenerationSource, sinceMs: number): Promise<Answer | undefined> {
  const snapshot = await source.read(sinceMs).catch(() => undefined);
  return snapshot && readFrom({ read: () => Promise.resolve(snapshot) }, sinceMs);
}
