import { deepStrictEqual, ok, rejects } from 'node:assert';
import type { Floor } from '../../generation/source';
import { expectFloors, readFrom, TIME } from './harness';
import type { SourceCases, SourceContext } from './harness';

const CHANGES = 10_000;
/** Publishes at the same time. */
const WIDTH = 200;

const ODD_CLIENT_IDS = [
  '__proto__',
  'constructor',
  ' ',
  ' leading and trailing ',
  'a:b::c',
  `it's "quoted", \\ and %41`,
  '{tag}*?[a-z]',
  'Ünïcödé-日本語-🧾',
  'e\u0301',
  '\u00e9',
  '\u0001\u007f\u200b\u2028',
  '-1',
  '0',
  'null',
  'x'.repeat(128),
];

/** A published floor is read. */
export const floorCases: SourceCases = {
  async 'a floor whose publish has resolved is in every later read'({ source, publish }) {
    for (const generation of [TIME, TIME + 1, TIME + 5]) {
      await publish('pos', generation);
      expectFloors(await readFrom(source, 0), [['pos', generation]], 'read(0) after publish');
    }
  },

  async 'a lower number changes nothing, in whatever order and however often numbers come'({ source, publish }) {
    for (const offset of [3, 1, 9, 9, 2, 9, 0, 8]) await publish('pos', TIME + offset);
    await publish('kiosk', TIME);
    const { floors } = await readFrom(source, 0);
    deepStrictEqual(Object.fromEntries(floors), { pos: TIME + 9, kiosk: TIME });
  },

  async 'publishes of one client at the same time end at the highest number'(context) {
    const shuffled = Array.from({ length: WIDTH }, (_, index): Floor => ['pos', TIME + ((index * 73) % WIDTH)]);
    await publishAll(context, shuffled);
    expectFloors(await readFrom(context.source, 0), [['pos', TIME + WIDTH - 1]], 'read(0)');
  },

  'a read since a time has everything that moved at or after it': movesAreFoundByTheirTime,

  async 'a watched source returns everything that moved at or after a time'(context) {
    const stop = await context.source.watch?.(() => undefined);
    await movesAreFoundByTheirTime(context);
    stop?.();
  },

  async 'read(0) is complete, also after reads from a later time'({ source, publish }) {
    const expected = numbered(50);
    for (const [clientId, generation] of expected) {
      await publish(clientId, generation);
      await readFrom(source, (await readFrom(source, 0)).nowMs);
    }
    expectFloors(await readFrom(source, 0), expected, 'read(0)');
  },

  async 'nowMs is a time in ms that never steps back'({ source, publish }) {
    let latestMs = 1e12;
    for (let n = 0; n < 20; n++) {
      const { nowMs } = await readFrom(source, n % 2 === 0 ? 0 : latestMs);
      ok(nowMs >= latestMs, `nowMs is ${nowMs} after ${latestMs}`);
      latestMs = nowMs;
      await publish('pos', TIME + n);
    }
  },

  async 'counters and the largest numbers are kept as they are'(context) {
    const numbers = [0, 1, 41, 1e12 - 1, 1e12, 1e12 + 1, 2 ** 53 - 2, 2 ** 53 - 1];
    await allAreRead(
      context,
      numbers.map((number) => [`client-${number}`, number]),
    );
  },

  async 'odd client ids are kept as they are'(context) {
    await allAreRead(
      context,
      ODD_CLIENT_IDS.map((clientId, index) => [clientId, TIME + index]),
    );
    const { floors } = await readFrom(context.source, 0);
    deepStrictEqual([...floors.keys()].sort(), [...ODD_CLIENT_IDS].sort());
  },

  async [`${CHANGES} changes arrive complete`](context) {
    await allAreRead(context, numbered(CHANGES));
  },

  async 'publish refuses anything but a floor with a TypeError'({ source }) {
    if (!source.publish) return;
    const wrong: [unknown, unknown][] = [
      ...['', undefined, null, 7, {}].map((clientId): [unknown, unknown] => [clientId, TIME]),
      ...[undefined, null, '5', NaN, Infinity, -1, 1.5, 2 ** 53].map((number): [unknown, unknown] => ['pos', number]),
    ];
    for (const [clientId, generation] of wrong) {
      const published = async (): Promise<void> => source.publish?.(clientId as string, generation as number);
      await rejects(published, TypeError, `publish(${String(clientId)}, ${String(generation)}) did not reject`);
    }
    deepStrictEqual([...(await readFrom(source, 0)).floors], []);
  },
};

/** Old numbers, counters and numbers ahead of the clock: only the time of the move counts. */
async function movesAreFoundByTheirTime({ source, publish }: SourceContext): Promise<void> {
  const known = new Map<string, number>();
  let { nowMs } = await readFrom(source, 0);
  for (let n = 0; n < 60; n++) {
    const number = [nowMs - 86_400_000, n + 1, nowMs + 30_000, 1e12 + n, nowMs][n % 5] as number;
    const floor: Floor = [`client-${n % 20}`, Math.floor(number)];
    known.set(floor[0], Math.max(floor[1], known.get(floor[0]) ?? 0));
    const moved = known.get(floor[0]) === floor[1];
    await publish(...floor);
    const read = await readFrom(source, nowMs);
    if (moved) expectFloors(read, [floor], `read(${nowMs}) after a move`);
    nowMs = read.nowMs;
  }
  expectFloors(await readFrom(source, 0), known, 'read(0)');
}

async function allAreRead(context: SourceContext, floors: readonly Floor[]): Promise<void> {
  const { nowMs } = await readFrom(context.source, 0);
  await publishAll(context, floors);
  expectFloors(await readFrom(context.source, 0), floors, 'read(0)');
  expectFloors(await readFrom(context.source, nowMs), floors, 'read(nowMs of an earlier read)');
}

async function publishAll({ publish }: SourceContext, floors: readonly Floor[]): Promise<void> {
  for (let start = 0; start < floors.length; start += WIDTH) {
    await Promise.all(floors.slice(start, start + WIDTH).map((floor) => publish(...floor)));
  }
}

function numbered(count: number): Floor[] {
  return Array.from({ length: count }, (_, index): Floor => [`client-${index}`, TIME + index]);
}
