import { deepStrictEqual, ok, rejects } from 'node:assert';
import type { Change, LogReader } from 'tillgate/generations';
import { option, readOptions } from 'tillgate/internal';
import type { TableOf } from 'tillgate/internal';
import type { ContractCase } from '../contract/subject';
import {
  inTime,
  nextChanges,
  numbered,
  reachEngine,
  readAll,
  readsWhatFollows,
  readToEnd,
  retried,
  TIME,
} from './harness';
import type { GenerationSourceFixture, SourceContext } from './harness';
import { MARK_CASES } from './mark-cases';

/** Options of `generationSourceCases()`. */
export interface GenerationSourceCasesOptions {
  /** Opens a source on an empty log of its own; called once per case. */
  readonly create: () => Promise<GenerationSourceFixture>;
  /** Changes in the largest case. Default 10000. */
  readonly changes?: number | undefined;
  /** Longest time for a hint, a close or a recovery, in ms; twice as long for a call while the engine does not respond. Default 2000. */
  readonly timeoutMs?: number | undefined;
}

/**
 * The conformance suite of the extension point `GenerationSource`: a source that passes can be given to `authenticate()` and
 * `startPublisher()`. It needs no test framework. A case about an optional member (`append` of the source; `another`,
 * `disconnect`, `wipe`, `snapshot`, `stall` of the fixture) passes when that member is missing.
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { test } from 'node:test';
 * import { memoryGenerations } from 'tillgate/generations';
 * import { generationSourceCases } from '@tillgate/testing';
 *
 * async function create() {
 *   const source = memoryGenerations();
 *   return { source, close: () => source.close() };
 * }
 * for (const { name, run } of generationSourceCases({ create })) void test(name, run);
 * ```
 */
export function generationSourceCases(options: GenerationSourceCasesOptions): ContractCase[] {
  const given = readOptions('generationSourceCases', options, {
    create: option.required(option.callable<GenerationSourceCasesOptions['create']>()),
    changes: option.number({ unit: 'changes', min: 1, integer: true }, 10_000),
    timeoutMs: option.number({ unit: 'milliseconds', min: 1, max: 600_000 }, 2_000),
  } satisfies TableOf<GenerationSourceCasesOptions>);
  const { create, changes: count, timeoutMs } = given;
  return Object.entries(CASES).map(([name, test]) => ({
    name,
    async run() {
      const fixture = await create();
      const { source } = fixture;
      const readers: LogReader[] = [];
      function open(): LogReader {
        const reader = source.reader();
        readers.push(reader);
        return reader;
      }
      async function append(...changes: Change[]): Promise<void> {
        if (source.append) await source.append(changes);
        else await fixture.append?.(changes);
      }
      try {
        if (!source.append && !fixture.append) {
          throw new TypeError('generationSourceCases(): the source has no append(), so the fixture must have one');
        }
        await test({ fixture, source, count, timeoutMs, append, open });
      } finally {
        for (const reader of readers) reader.close();
        await fixture.close();
      }
    },
  }));
}

const ODD_CLIENT_IDS = [
  '__proto__',
  ' leading and trailing ',
  'a:b::c',
  `it's "quoted", \\ and %41`,
  '{tag}*?[a-z]',
  'Ünïcödé-日本語-🧾',
  'e\u0301',
  '\u00e9',
  '\u0001\u007f\u200b\u2028',
  'x'.repeat(2_048),
];

/** Requirements on sources, each with its test. */
const CASES: Readonly<Record<string, (context: SourceContext) => Promise<void>>> = {
  async 'a reader continues at its position, another one starts at the oldest change'({ append, open }) {
    const [first, second] = [open(), open()];
    await append(['pos', TIME]);
    deepStrictEqual((await readToEnd(first)).changes, [['pos', TIME]]);
    await append(['pos', TIME + 1]);
    deepStrictEqual((await readToEnd(first)).changes, [['pos', TIME + 1]]);
    deepStrictEqual((await readToEnd(first)).changes, []);
    deepStrictEqual((await readToEnd(second)).changes, [
      ['pos', TIME],
      ['pos', TIME + 1],
    ]);
  },

  async 'next() waits for a change, and returns as soon as one is appended'({ append, open, timeoutMs }) {
    const reader = open();
    await readToEnd(reader);
    for (const change of numbered(5)) {
      const waiting = inTime(nextChanges(reader, timeoutMs), timeoutMs, 'next() did not return the change');
      // The append may fail before this is awaited.
      waiting.catch(() => undefined);
      await append(change);
      deepStrictEqual(await waiting, [change]);
    }
  },

  async 'odd client ids, old numbers, counters and the largest times are kept as they are'({ source, append }) {
    const ids = ODD_CLIENT_IDS.map((clientId, index): Change => [clientId, TIME + index]);
    const numbers = [0, 1, 41, 1e12 - 1, 1e12, 1e12 + 1, TIME].map((number): Change => [`client-${number}`, number]);
    await append(...ids, ...numbers);
    deepStrictEqual(await readAll(source), [...ids, ...numbers]);
  },

  async 'many changes arrive complete and in their order, in batches'({ append, count, open }) {
    const changes = numbered(count);
    for (let at = 0; at < count; at += 1_000) await append(...changes.slice(at, at + 1_000));
    const reader = open();
    const read: Change[] = [];
    for (let end = false; !end;) {
      const batch = await reader.next(0);
      ok(batch.changes.length <= 5_000, `a batch has ${batch.changes.length} changes`);
      read.push(...batch.changes);
      ({ end } = batch);
    }
    deepStrictEqual(read, changes);
  },

  async 'appends at the same time all arrive'({ source, append }) {
    const changes = numbered(200);
    await Promise.all(changes.map((change) => append(change)));
    deepStrictEqual(new Map(await readAll(source)), new Map(changes));
  },

  async 'append refuses anything but a change with a TypeError, and appends nothing'({ source }) {
    if (!source.append) return;
    const ids = ['', undefined, null, 7, {}, 'a\0b', '\ud800', 'x'.repeat(2_049)];
    const numbers = [undefined, null, '5', NaN, Infinity, -1, 1.5, 2 ** 53, TIME * 1000];
    for (const change of [...ids.map((id) => [id, TIME]), ...numbers.map((number) => ['pos', number])]) {
      const appended = async (): Promise<unknown> => source.append?.([['good', TIME], change as unknown as Change]);
      await rejects(appended, TypeError, `append([[${change.map(String).join(', ')}]]) did not reject`);
    }
    deepStrictEqual(await readAll(source), []);
  },

  ...MARK_CASES,

  async 'two sources on one log see what is appended through either'({ fixture, append, timeoutMs }) {
    const other = await fixture.another?.();
    if (!other) return;
    try {
      const reader = other.reader();
      await readToEnd(reader);
      const waiting = inTime(nextChanges(reader, timeoutMs), timeoutMs, 'the change did not arrive');
      waiting.catch(() => undefined);
      await append(['pos', TIME]);
      deepStrictEqual(await waiting, [['pos', TIME]]);
      reader.close();
    } finally {
      await other.close?.();
    }
  },

  async 'a reader whose connection is cut continues where it was'({ fixture, append, timeoutMs, open }) {
    if (!fixture.disconnect) return;
    const reader = open();
    await append(...numbered(100));
    await readToEnd(reader);
    for (let n = 0; n < 3; n++) {
      // A client may send the command again on its next connection, which then waits anew.
      const waiting = reader.next(Math.min(timeoutMs, 1_000)).catch(() => undefined);
      await fixture.disconnect();
      await waiting;
      const change: Change = ['pos', TIME + n];
      await retried(() => append(change));
      const read: Change[] = [];
      await retried(async () => {
        read.push(...(await readToEnd(reader)).changes);
        const isRead = read.some(([, generation]) => generation === TIME + n);
        ok(isRead, 'the change did not arrive');
      });
      ok(read.length < 50, `${read.length} changes were read again after a cut`);
    }
  },

  async 'calls end in their time while the engine does not respond, and what comes after that is read'(context) {
    const { fixture, append, timeoutMs } = context;
    if (!fixture.stall) return;
    await append(...numbered(3));
    await readsWhatFollows(context, async (reader) => {
      const release = await fixture.stall?.();
      // Whether the append took place is not known.
      const calls = Promise.allSettled([reader.next(0), append(['kiosk', TIME])]);
      await inTime(calls, 2 * timeoutMs, 'next(0) or append() did not end').finally(release);
    });
  },

  async 'close() ends what waits, and what comes after it rejects'({ source, timeoutMs }) {
    const reader = source.reader();
    await readToEnd(reader);
    const waiting = reader.next(timeoutMs * 10).catch(() => undefined);
    await reachEngine();
    reader.close();
    await inTime(waiting, timeoutMs, 'next() did not end with its reader');
    const second = source.reader();
    await readToEnd(second);
    const other = second.next(timeoutMs * 10).catch(() => undefined);
    await reachEngine();
    await source.close?.();
    if (source.close) await inTime(other, timeoutMs, 'next() did not end with its source');
    if (source.close) await rejects(async () => second.next(0));
    if (source.append && source.close) await rejects(async () => source.append?.([['pos', TIME]]));
    await source.close?.();
  },
};
