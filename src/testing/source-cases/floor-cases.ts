import { deepStrictEqual, ok, rejects } from 'node:assert';
import type { Floor } from '../../generation/source';
import { expectFloors, publishAll, readFrom } from './harness';
import type { SourceContext, SourceTest } from './harness';

const TIME = 1_800_000_000_000;
const CHANGES = 10_000;

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
export const floorCases: readonly SourceTest[] = [
  { name: 'a floor whose publish has resolved is in every later read', test: publishedIsRead },
  {
    name: 'a lower number changes nothing, in whatever order and however often numbers come',
    test: lowerNumbersChangeNothing,
  },
  {
    name: 'publishes of one client at the same time end at the highest number',
    test: concurrentPublishesEndAtTheHighest,
  },
  { name: 'a read since a time has everything that moved at or after it', test: movesAreFoundByTheirTime },
  { name: 'a watched source returns everything that moved at or after a time', test: watchedSourceFindsMoves },
  { name: 'read(0) is complete, also after reads from a later time', test: zeroReadsEverything },
  { name: 'nowMs is a time in ms that never steps back', test: nowNeverStepsBack },
  { name: 'counters and the largest numbers are kept as they are', test: numbersAreKept },
  { name: 'odd client ids are kept as they are', test: oddClientIdsAreKept },
  { name: `${CHANGES} changes arrive complete`, test: manyChangesArrive },
  { name: 'publish refuses anything but a floor with a TypeError', test: wrongArgumentsAreRefused },
];

async function publishedIsRead({ source, publish }: SourceContext): Promise<void> {
  for (const generation of [TIME, TIME + 1, TIME + 5]) {
    await publish('pos', generation);
    expectFloors(await readFrom(source, 0), [['pos', generation]], 'read(0) after publish');
  }
}

async function lowerNumbersChangeNothing({ source, publish }: SourceContext): Promise<void> {
  for (const offset of [3, 1, 9, 9, 2, 9, 0, 8]) await publish('pos', TIME + offset);
  await publish('kiosk', TIME);
  const expected: Floor[] = [
    ['pos', TIME + 9],
    ['kiosk', TIME],
  ];
  const { floors } = await readFrom(source, 0);
  deepStrictEqual(new Map(floors), new Map(expected));
}

async function concurrentPublishesEndAtTheHighest(context: SourceContext): Promise<void> {
  const floors = shuffled(200).map((offset): Floor => ['pos', TIME + offset]);
  await publishAll(context, floors);
  expectFloors(await readFrom(context.source, 0), [['pos', TIME + 199]], 'read(0)');
}

async function watchedSourceFindsMoves(context: SourceContext): Promise<void> {
  const stop = await context.source.watch?.(() => undefined);
  await movesAreFoundByTheirTime(context);
  stop?.();
}

async function zeroReadsEverything({ source, publish }: SourceContext): Promise<void> {
  const expected = numbered(50, TIME);
  for (const [clientId, generation] of expected) {
    await publish(clientId, generation);
    await readFrom(source, (await readFrom(source, 0)).nowMs);
  }
  expectFloors(await readFrom(source, 0), expected, 'read(0)');
}

async function nowNeverStepsBack({ source, publish }: SourceContext): Promise<void> {
  let latestMs = 1e12;
  for (let n = 0; n < 20; n++) {
    const { nowMs } = await readFrom(source, n % 2 === 0 ? 0 : latestMs);
    ok(nowMs >= latestMs, `nowMs is ${nowMs} after ${latestMs}`);
    latestMs = nowMs;
    await publish('pos', TIME + n);
  }
}

async function numbersAreKept(context: SourceContext): Promise<void> {
  const numbers = [0, 1, 41, 1e12 - 1, 1e12, 1e12 + 1, 2 ** 53 - 2, 2 ** 53 - 1];
  const expected = numbers.map((number): Floor => [`client-${number}`, number]);
  const { nowMs } = await readFrom(context.source, 0);
  await publishAll(context, expected);
  expectFloors(await readFrom(context.source, 0), expected, 'read(0)');
  expectFloors(await readFrom(context.source, nowMs), expected, 'read(nowMs of an earlier read)');
}

async function oddClientIdsAreKept(context: SourceContext): Promise<void> {
  const expected = ODD_CLIENT_IDS.map((clientId, index): Floor => [clientId, TIME + index]);
  const { nowMs } = await readFrom(context.source, 0);
  await publishAll(context, expected);
  const { floors } = await readFrom(context.source, 0);
  deepStrictEqual([...floors.keys()].sort(), [...ODD_CLIENT_IDS].sort());
  expectFloors({ floors, nowMs }, expected, 'read(0)');
  expectFloors(await readFrom(context.source, nowMs), expected, 'read(nowMs of an earlier read)');
}

async function manyChangesArrive(context: SourceContext): Promise<void> {
  const { nowMs } = await readFrom(context.source, 0);
  const expected = numbered(CHANGES, TIME);
  await publishAll(context, expected);
  expectFloors(await readFrom(context.source, nowMs), expected, 'read(nowMs of an earlier read)');
  expectFloors(await readFrom(context.source, 0), expected, 'read(0)');
}

async function wrongArgumentsAreRefused({ source }: SourceContext): Promise<void> {
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
}

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

function numbered(count: number, firstGeneration: number): Floor[] {
  return Array.from({ length: count }, (_, index): Floor => [`client-${index}`, firstGeneration + index]);
}

/** Every number below `count` once, in a fixed shuffled order. */
function shuffled(count: number): number[] {
  return Array.from({ length: count }, (_, index) => (index * 73) % count);
}
