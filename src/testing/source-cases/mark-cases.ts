import { deepStrictEqual, equal, ok } from 'node:assert';
import type { Mark, Unit } from 'tillgate/generations';
import { inTime, markOf, numbered, readAll, readsWhatFollows, readToEnd, readUntil, retried, TIME } from './harness';
import type { SourceContext } from './harness';

/** Requirements on units, marks, epochs and positions, each with its test. */
export const MARK_CASES: Readonly<Record<string, (context: SourceContext) => Promise<void>>> = {
  async 'a unit takes place if the log has the expected mark, and replaces it'({ source, open }) {
    if (!source.append) return;
    const [first, second] = [markOf('epoch', 1), markOf('epoch', 2)];
    deepStrictEqual(await source.append([['pos', TIME]], { expected: undefined, mark: first }), first);
    deepStrictEqual(await source.append([['kiosk', TIME]], { expected: first, mark: second }), second);
    const reader = open();
    const { changes, mark } = await readToEnd(reader);
    deepStrictEqual(changes, [
      ['pos', TIME],
      ['kiosk', TIME],
    ]);
    deepStrictEqual(mark, second);
  },

  async 'a unit that expects another mark appends nothing, and returns the mark of the log'({ source }) {
    if (!source.append) return;
    const mark = markOf('epoch', 3);
    const refused: Unit = { expected: markOf('epoch', 2), mark };
    equal(await source.append([['pos', TIME]], refused), undefined);
    const first = markOf('epoch', 1);
    await source.append([], { expected: undefined, mark: first });
    for (const expected of [undefined, markOf('epoch', 2), markOf('other', 1)]) {
      deepStrictEqual(await source.append([['pos', TIME]], { expected, mark }), first);
    }
    deepStrictEqual(await readAll(source), []);
  },

  async 'of units that expect the same mark, one takes place'({ source }) {
    if (!source.append) return;
    const first = markOf('epoch', 1);
    await source.append([], { expected: undefined, mark: first });
    const marks = Array.from({ length: 20 }, (_, index) => markOf('epoch', index + 2));
    const attempt = async (mark: Mark): Promise<Mark | undefined> =>
      source.append?.([[`client-${mark.unit}`, TIME]], { expected: first, mark });
    const found = await Promise.all(marks.map(attempt));
    const winner = found[0];
    for (const mark of found) deepStrictEqual(mark, winner);
    deepStrictEqual(await readAll(source), [[`client-${winner?.unit}`, TIME]]);
  },

  async 'a mark is never read before what was appended up to its unit, by readers that read meanwhile'(context) {
    const { source, append, open } = context;
    if (!source.append) return;
    let isDone = false;
    const reading = Array.from({ length: 3 }, async () => {
      let reader = open();
      let known = new Set<string>();
      while (!isDone) {
        const { changes, mark, end } = await reader.next(0);
        for (const [clientId] of changes) known.add(clientId);
        if (mark && end)
          for (let n = 1; n <= mark.unit; n++)
            ok(known.has(`client-${n}`) && known.has(`plain-${n}`), `mark ${mark.unit} before ${n}`);
        if (!end || known.size % 3 !== 0) continue;
        // Another one now and then, which reads everything. Each may have a connection: the old one is closed.
        reader.close();
        reader = open();
        known = new Set();
      }
    });
    let expected: Mark | undefined;
    for (let unit = 1; unit <= 40; unit++) {
      const mark = markOf('epoch', unit);
      await append([`plain-${unit}`, TIME]);
      deepStrictEqual(await source.append([[`client-${unit}`, TIME]], { expected, mark }), mark);
      expected = mark;
    }
    isDone = true;
    await Promise.all(reading);
  },

  async 'a reader reaches the end, and misses nothing, although a new epoch begins before each of its reads'(context) {
    const { source, timeoutMs, append, open } = context;
    if (!source.append) return;
    const changes = numbered(3_000);
    for (let at = 0; at < changes.length; at += 1_000) await append(...changes.slice(at, at + 1_000));
    const reader = open();
    const known = new Map<string, number>();
    let expected: Mark | undefined;
    let seen: Mark | undefined;
    let isEnd = false;
    for (let epoch = 0; epoch < 200 && !isEnd; epoch++) {
      const mark = markOf(`epoch-${epoch}`, 1);
      await source.append([[`unit-${epoch}`, TIME]], { expected, mark });
      expected = mark;
      const batch = await inTime(reader.next(0), timeoutMs, 'next(0) did not return');
      for (const change of batch.changes) known.set(...change);
      isEnd = batch.end;
      seen = batch.mark;
    }
    ok(isEnd, 'the reader starts again at each new epoch: it must finish its pass first');
    for (const [clientId, generation] of changes) equal(known.get(clientId), generation);
    // A mark that was counted need not be returned again.
    if (seen?.epoch !== expected?.epoch) {
      for (const change of (await readUntil(reader, expected as Mark)).changes) known.set(...change);
    }
    ok(known.has('unit-0'));
  },

  async 'an empty log is at its end, and next() returns after its time, also while the mark moves'(context) {
    const { source, timeoutMs, open } = context;
    const reader = open();
    const { changes, mark, end } = await inTime(reader.next(50), timeoutMs, 'next(50) did not return');
    deepStrictEqual({ changes: [...changes], mark, end }, { changes: [], mark: undefined, end: true });
    if (!source.append) return;
    let expected: Mark | undefined;
    for (let unit = 1; unit <= 5; unit++) {
      const mark = markOf('epoch', unit);
      await source.append([], { expected, mark });
      expected = mark;
      const { changes } = await inTime(reader.next(50), timeoutMs, 'next(50) did not return');
      equal(changes.length, 0);
    }
  },

  async 'a position is never given twice: what follows a wipe is read, however much was read before'(context) {
    const { fixture, append } = context;
    if (!fixture.wipe) return;
    await append(...numbered(5));
    await readsWhatFollows(context, fixture.wipe.bind(fixture));
  },

  async 'a position is never given twice: what follows a restore is read, by a reader that was ahead of it too'(
    context,
  ) {
    const { fixture, append } = context;
    await append(['first', TIME]);
    const restore = await fixture.snapshot?.();
    if (!restore) return;
    await append(...numbered(5));
    await readsWhatFollows(context, restore);
  },

  async 'nothing is trimmed by the clock of a publisher that is ahead, and nothing by one that is behind'(context) {
    const { source, append } = context;
    if (!source.append) return;
    await append(...numbered(3));
    const keptMs = 3_600_000;
    const times = [Date.now() + 10 * 86_400_000, Date.now(), 0];
    let expected: Mark | undefined;
    for (const [index, completeMs] of times.entries()) {
      const mark = { epoch: `epoch-${index}`, unit: 1, completeMs, keptMs };
      await source.append([[`unit-${index}`, TIME]], { expected, mark });
      expected = mark;
    }
    const kept = (await readAll(source)).map(([clientId]) => clientId);
    deepStrictEqual(kept, ['client-0', 'client-1', 'client-2', 'unit-0', 'unit-1', 'unit-2']);
  },

  async 'a wiped log has no mark, and its readers get what is written after it'({ fixture, source, open }) {
    if (!source.append || !fixture.wipe) return;
    const [first, second] = [markOf('one', 1), markOf('two', 1)];
    await source.append(numbered(3), { expected: undefined, mark: first });
    const reader = open();
    await readToEnd(reader);
    await fixture.wipe();
    equal(await retried(() => source.append?.([], { expected: first, mark: second })), undefined);
    await source.append([['pos', TIME]], { expected: undefined, mark: second });
    ok((await readUntil(reader, second)).changes.some(([clientId]) => clientId === 'pos'));
  },

  async 'a log that went back has its older mark, and a unit that expects the newer one fails'(context) {
    const { fixture, source, open } = context;
    if (!source.append || !fixture.snapshot) return;
    const [first, second, third] = [markOf('one', 1), markOf('one', 2), markOf('two', 1)];
    await source.append(numbered(3), { expected: undefined, mark: first });
    const restore = await fixture.snapshot();
    await source.append([['lost', TIME]], { expected: first, mark: second });
    const reader = open();
    ok((await readToEnd(reader)).changes.some(([clientId]) => clientId === 'lost'));
    await restore();
    deepStrictEqual(await retried(() => source.append?.([], { expected: second, mark: third })), first);
    await source.append([['lost', TIME + 1]], { expected: first, mark: third });
    ok((await readUntil(reader, third)).changes.some(([, generation]) => generation === TIME + 1));
  },
};
