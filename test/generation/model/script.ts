import fc from 'fast-check';
import type { HintFate, ReadFate, WatchFate } from './link';
import type { ServerKind } from './server';
import { MAX_TOKEN_AGE, MINUTE } from './world';

/** One thing that happens. Servers, writers and clients are numbers and names of the model. */
export type Event =
  | { readonly event: 'change'; readonly client: string; readonly writer: number; readonly lateMs: number }
  | { readonly event: 'issue'; readonly client: string; readonly writer: number; readonly lifetimeMs: number }
  | { readonly event: 'present'; readonly server: number; readonly nth: number }
  | { readonly event: 'present all'; readonly server: number }
  | { readonly event: 'pass'; readonly ms: number }
  | { readonly event: 'restart'; readonly server: number }
  | { readonly event: 'reads'; readonly server: number; readonly fates: readonly ReadFate[] }
  | { readonly event: 'hints'; readonly server: number; readonly fate: HintFate; readonly times: number }
  | { readonly event: 'watches'; readonly server: number; readonly fate: WatchFate; readonly times: number }
  | { readonly event: 'lose watch' | 'hint anyway'; readonly server: number }
  | { readonly event: 'step server'; readonly server: number; readonly ms: number }
  | { readonly event: 'mistaken clock'; readonly server: number; readonly ms: number; readonly forMs: number }
  | { readonly event: 'step source'; readonly ms: number }
  | { readonly event: 'empty source' };

/** A whole story. */
export interface Script {
  readonly servers: readonly ServerKind[];
  /** Whether every token is judged after every event, and several times while time passes. */
  readonly probing: boolean;
  readonly events: readonly Event[];
}

export const SERVERS: readonly ServerKind[] = [
  { name: 'watched, reject', source: 'watched', onStale: 'reject' },
  { name: 'polled, reject', source: 'polled', onStale: 'reject' },
  { name: 'watched, accept', source: 'watched', onStale: 'accept' },
  { name: 'learned only', source: 'none', onStale: 'reject' },
];

const HOUR = 60 * MINUTE;
/** Longest time in ms between the beginning of a change and its commit: with a small step it stays below the overlap. */
const LATEST_COMMIT = 30_000;
/** Steps of the source's clock that the overlap covers. */
const SMALL_STEPS = [-25_000, 25_000];
/** So far that every reader notices, however long it was away. */
export const FAR_STEP_BACK = -10 * HOUR;

/** Arbitrary scripts of one or two servers. */
export function scripts(): fc.Arbitrary<Script> {
  return fc.record({
    servers: fc.array(fc.constantFrom(...SERVERS), { minLength: 1, maxLength: 2 }),
    probing: fc.boolean(),
    events: fc.array(events(), { minLength: 5, maxLength: 50, size: 'max' }),
  });
}

function events(): fc.Arbitrary<Event> {
  const server = fc.constantFrom(0, 0, 1);
  const client = fc.constantFrom('pos', 'pos', '__proto__');
  const writer = fc.nat({ max: 2 });
  const lateMs = fc.constantFrom(0, 0, 0, 800, 9_000, LATEST_COMMIT);
  const lifetimeMs = fc.constantFrom(MAX_TOKEN_AGE, MAX_TOKEN_AGE, MINUTE);
  const pause = fc.constantFrom(0, 1, 40, 700, 3_000, 6_000, 8_000, 16_000, 25_000, 65_000, MAX_TOKEN_AGE - 20_000);
  const serverStep = fc.constantFrom(-25 * HOUR, -12 * MINUTE, -30_000, -4_000, 30_000, 12 * MINUTE, 25 * HOUR);
  const sourceStep = fc.constantFrom(...SMALL_STEPS, FAR_STEP_BACK, FAR_STEP_BACK);
  const mistake = { ms: fc.constantFrom(12 * MINUTE, 25 * HOUR), forMs: fc.constantFrom(0, 100, 4_000, 9_000) };
  const weighted: [number, fc.Arbitrary<Event>][] = [
    [6, fc.record({ event: fc.constant('change'), client, writer, lateMs })],
    [6, fc.record({ event: fc.constant('issue'), client, writer, lifetimeMs })],
    [3, fc.record({ event: fc.constant('present'), server, nth: fc.nat({ max: 5 }) })],
    [5, fc.record({ event: fc.constant('present all'), server })],
    [9, fc.record({ event: fc.constant('pass'), ms: pause })],
    [1, fc.record({ event: fc.constant('restart'), server })],
    [
      4,
      fc.record({ event: fc.constant('reads'), server, fates: fc.array(readFate(), { minLength: 1, maxLength: 9 }) }),
    ],
    [2, fc.record({ event: fc.constant('hints'), server, fate: hintFates(), times: fc.constantFrom(1, 3) })],
    [1, fc.record({ event: fc.constant('watches'), server, fate: watchFates(), times: fc.constantFrom(1, 3) })],
    [1, fc.record({ event: fc.constantFrom('lose watch', 'hint anyway'), server })],
    [1, fc.record({ event: fc.constant('step server'), server, ms: serverStep })],
    [2, fc.record({ event: fc.constant('mistaken clock'), server, ...mistake })],
    [2, fc.record({ event: fc.constant('step source'), ms: sourceStep })],
    [1, fc.record({ event: fc.constant('empty source') })],
  ];
  return fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

/** A verifier waits for 5 s, so some of the slow responses are too late to count. */
function readFate(): fc.Arbitrary<ReadFate> {
  const thereMs = fc.constantFrom(0, 0, 30, 4_000, 11_000);
  const backMs = fc.constantFrom(0, 30, 4_900, 5_500, 19_000);
  const kind = fc.constantFrom('fails' as const, 'fails' as const, 'hangs' as const, 'is partly broken' as const);
  return fc.oneof(fc.record({ kind: fc.constant('responds' as const), thereMs, backMs }), fc.record({ kind }));
}

function hintFates(): fc.Arbitrary<HintFate> {
  const late = fc.record({ lateMs: fc.constantFrom(500, 12_000) });
  return fc.oneof(fc.constantFrom('lost' as const, 'repeated' as const), late);
}

function watchFates(): fc.Arbitrary<WatchFate> {
  return fc.constantFrom('fails', 'hangs');
}
