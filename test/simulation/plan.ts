import { Random } from './random';
import type { LinkFault } from './link';
import type { EngineHabits } from './link';

/** Bounds of every world, small ones, so that it takes minutes of its own time. */
export const BOUNDS = { maxSilenceMs: 20_000, maxStalenessMs: 5_000, skewMs: 1_000 } as const;

/** How long a world is left alone at its end. */
export const REST_MS = 75_000;

export interface ProcessPlan {
  readonly claim: 'generation' | 'iat';
  readonly startsMs: number;
  readonly pollMs: number;
  readonly readTimeoutMs: number;
}

/** What a world consists of. */
export interface Setting {
  /** `truth`: a token server whose log, in its memory, is complete by itself. `http`: one with a publisher. */
  readonly source: 'engine' | 'memory' | 'http' | 'truth';
  readonly processes: readonly ProcessPlan[];
  readonly clients: number;
  readonly habits: EngineHabits;
  readonly publisherTimeoutMs: number;
  readonly tokenAgeMs: number;
  /** Whether the publisher keeps changes for a shorter time than the processes need. */
  readonly isKeptTooShort: boolean;
  /** How often the newest token of a client is presented: it teaches a process what the log should. */
  readonly newTokenChance: number;
  /** Further changes in the record: an epoch takes several units then. */
  readonly fillers: number;
}

/** An event: what it means is in events.ts. */
export interface PlannedEvent {
  readonly atMs: number;
  readonly kind: string;
  /** A process; -1: the publisher. */
  readonly who: number;
  readonly client: number;
  /** How long it lasts, how late it is, or how far it goes. */
  readonly ms: number;
  readonly n: number;
  readonly fault: LinkFault;
}

export interface Plan {
  readonly seed: number;
  readonly setting: Setting;
  readonly events: readonly PlannedEvent[];
  /** When every fault is over. */
  readonly healMs: number;
}

type Family = 'change' | 'publisher' | 'engine' | 'link' | 'clock' | 'process' | 'foreign';

/** Kinds of events by family, each with a weight. */
const KINDS: Readonly<Record<Family, Readonly<Record<string, number>>>> = {
  change: { change: 8, burst: 1, remove: 1, create: 2, token: 3 },
  publisher: { stop: 3, kill: 2, away: 3, 'slow record': 2, 'failing record': 1, 'restored record': 1 },
  engine: { wipe: 2, 'go back': 3, 'lose mark': 1, 'fail over': 2, 'wipe between': 1, 'go back between': 2 },
  link: { 'break process': 4, 'break publisher': 4, 'break all': 3, 'slow pages': 2 },
  clock: { 'set process': 3, 'set publisher': 2, drift: 1 },
  process: { restart: 4, suspend: 1 },
  foreign: { microseconds: 1, 'an hour ahead': 1, 'seconds ahead': 2, 'days ahead': 1, 'not a change': 1 },
};

const FAMILIES = Object.keys(KINDS) as Family[];
const FAULTS: readonly LinkFault[] = ['cut', 'dead', 'loses responses', 'slow'];

/** Which families a world may have: engines that can be wiped are those behind a link. */
const FAMILIES_OF: Readonly<Record<Setting['source'], readonly Family[]>> = {
  engine: FAMILIES,
  memory: ['change', 'publisher', 'clock', 'process', 'foreign', 'link'],
  http: ['change', 'publisher', 'clock', 'process', 'foreign', 'link', 'engine'],
  truth: ['change', 'publisher', 'clock', 'process', 'link', 'engine'],
};

/** The world of a seed. */
export function planOf(seed: number): Plan {
  const random = new Random(seed);
  const setting = drawSetting(random.fork());
  const draw = random.fork();
  // A few kinds of faults each: what finds one fault hides another.
  const families = FAMILIES_OF[setting.source].filter((family) => family === 'change' || draw.chance(0.45));
  const weights = new Map(families.map((family) => [family, family === 'change' ? 4 : draw.int(1, 6)]));
  const healMs = draw.pick([30_000, 50_000, 80_000, 110_000]);
  const count = draw.int(6, 40);
  const longestMs = draw.pick([3_000, 12_000, 45_000]);
  const events = Array.from({ length: count }, () => drawEvent(draw, weights, setting, healMs, longestMs));
  return { seed, setting, events: events.sort((one, other) => one.atMs - other.atMs), healMs };
}

function drawSetting(random: Random): Setting {
  const source = random.pick([
    'engine',
    'engine',
    'engine',
    'engine',
    'engine',
    'engine',
    'memory',
    'http',
    'truth',
  ] as const);
  const processes = Array.from({ length: random.int(2, 4) }, (_, index) => ({
    claim: random.chance(0.7) ? ('generation' as const) : ('iat' as const),
    startsMs: index === 0 ? 0 : random.pick([0, 0, 500, 3_000, 20_000]),
    pollMs: random.pick([1_000, 2_000, 5_000]),
    readTimeoutMs: random.pick([800, 2_000]),
  }));
  const isMany = random.chance(source === 'http' || source === 'truth' ? 0.12 : 0.04);
  const fillers = isMany ? random.pick(source === 'engine' ? [520] : [520, 1_050, 2_050]) : random.int(0, 4);
  // Thousands of entries in pages of two would take a world's time to read.
  const pageSize = random.pick(isMany ? [200, 2_000] : [2, 3, 2_000]);
  return {
    source,
    processes,
    clients: random.int(1, 4),
    habits: { pageSize, wakesOnMark: random.chance(0.5), isHasty: random.chance(0.04) },
    publisherTimeoutMs: random.pick([500, 2_000]),
    tokenAgeMs: random.pick([60_000, 3_600_000, 86_400_000]),
    isKeptTooShort: random.chance(0.02),
    newTokenChance: random.pick([0, 0.05, 0.5]),
    fillers,
  };
}

function drawEvent(
  random: Random,
  weights: ReadonlyMap<Family, number>,
  { processes, clients }: Setting,
  healMs: number,
  longestMs: number,
): PlannedEvent {
  const family = drawWeighted(random, [...weights]);
  const kind = drawWeighted(random, Object.entries(KINDS[family]));
  // Most of them in the neighbourhood of another one, within the milliseconds of a response or the second of a mark.
  const atMs = random.chance(0.5)
    ? random.int(500, healMs)
    : 1_000 * random.int(1, healMs / 1_000 - 1) + random.int(0, 120);
  return {
    atMs,
    kind,
    who: random.int(0, processes.length - 1),
    client: random.int(0, clients - 1),
    ms: drawDuration(random, longestMs),
    n: random.int(1, 1_000),
    fault: random.pick(FAULTS),
  };
}

/** Short ones, those around the bound of silence, and others. */
function drawDuration(random: Random, longestMs: number): number {
  const which = random.next();
  if (which < 0.3) return random.int(1, 700);
  return which < 0.45 ? BOUNDS.maxSilenceMs + random.int(-2_000, 6_000) : random.int(500, longestMs);
}

function drawWeighted<Value>(random: Random, weights: readonly (readonly [Value, number])[]): Value {
  let left = random.next() * weights.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [value, weight] of weights) if ((left -= weight) < 0) return value;
  return (weights.at(-1) as readonly [Value, number])[0];
}
