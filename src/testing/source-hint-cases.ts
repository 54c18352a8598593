import { equal } from 'node:assert';
import type { SourceBench, SourceTest } from './source-fixture';
import { expectFloors, inTime, readFrom, witnessOf } from './source-probe';

const TIME = 1_800_000_000_000;

/** A watch says that something moved. */
export const hintCases: readonly SourceTest[] = [
  { name: 'a watch that stands wakes for every publish that comes after a read', test: watchWakes },
  { name: 'a change between the watch and the first read is read or hinted', test: changeBeforeTheFirstReadIsNotLost },
  { name: 'a watch that was stopped does not wake again, and the others go on', test: stoppedWatchStaysSilent },
  { name: 'two sources on one store see what is published through either', test: sourcesShareTheirStore },
];

async function watchWakes({ source, publish, timeoutMs }: SourceBench): Promise<void> {
  const witness = await witnessOf(source, timeoutMs);
  if (!witness) return;
  for (let n = 0; n < 5; n++) {
    const hint = witness.next();
    await publish('pos', TIME + n);
    await hint;
    expectFloors(await readFrom(source, 0), [['pos', TIME + n]], 'read(0) after a hint');
  }
  witness.stop();
}

async function changeBeforeTheFirstReadIsNotLost({ source, publish, timeoutMs }: SourceBench): Promise<void> {
  const witness = await witnessOf(source, timeoutMs);
  const reading = readFrom(source, 0);
  // The publish may fail before it is waited for.
  reading.catch(() => undefined);
  await publish('pos', TIME);
  const known = (await reading).floors.get('pos') === TIME;
  if (witness && !known && witness.hints === 0) await witness.next();
  witness?.stop();
}

async function stoppedWatchStaysSilent({ source, publish, timeoutMs }: SourceBench): Promise<void> {
  const stopped = await witnessOf(source, timeoutMs);
  const witness = await witnessOf(source, timeoutMs);
  if (!stopped || !witness) return;
  stopped.stop();
  stopped.stop();
  const before = stopped.hints;
  for (let n = 0; n < 2; n++) {
    const hint = witness.next();
    await publish('pos', TIME + n);
    await hint;
    await readFrom(source, 0);
  }
  witness.stop();
  equal(stopped.hints, before, 'hints after the watch was stopped');
}

async function sourcesShareTheirStore({ fixture, source, publish, timeoutMs }: SourceBench): Promise<void> {
  const other = await fixture.another?.();
  if (!other) return;
  try {
    const witness = await witnessOf(other, timeoutMs);
    const { nowMs } = await readFrom(other, 0);
    const hint = witness?.next();
    await publish('pos', TIME);
    expectFloors(await readFrom(other, 0), [['pos', TIME]], 'read(0) of the other source');
    expectFloors(await readFrom(other, nowMs), [['pos', TIME]], 'read(nowMs) of the other source');
    await hint;
    await other.publish?.('pos', TIME + 1);
    if (other.publish) expectFloors(await readFrom(source, 0), [['pos', TIME + 1]], 'read(0)');
    witness?.stop();
  } finally {
    await inTime(Promise.resolve(other.close?.()), timeoutMs, 'close() of the other source did not end');
  }
}
