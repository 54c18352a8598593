import { check, growth, stallsIn } from './check';
import type { Bounds } from './check';
import type { ChangeEntry, DelayEntry, Entry, FaultEntry, RequestEntry } from './ledger';

const BOUNDS: Bounds = {
  healthyMs: 1_000,
  anyFaultMs: 5_000,
  recoveryMs: 3_000,
  stall: { longerThanMs: 1_000, withinMs: 4_000 },
  growthBytes: 100,
};
/** Long after any fault. */
const T = 100_000;

/** Acknowledged after 10 ms. */
const change = (generation: number, sentMs: number): ChangeEntry => ({
  kind: 'change',
  client: 'pos',
  sentMs,
  ack: { atMs: sentMs + 10, generation },
});
const unanswered = (sentMs: number): ChangeEntry => ({ kind: 'change', client: 'pos', sentMs });
/** Answered after 10 ms. */
const request = (
  generation: number,
  sentMs: number,
  status: number,
  more: Partial<RequestEntry> = {},
): RequestEntry => ({
  kind: 'request',
  process: 'gate-1#1',
  client: 'pos',
  generation,
  sentMs,
  receivedMs: sentMs + 10,
  status,
  ...more,
});
const fault = (fromMs: number, toMs: number, more: Partial<FaultEntry> = {}): FaultEntry => ({
  kind: 'fault',
  name: 'cut',
  fromMs,
  toMs,
  isOutage: true,
  ...more,
});
/** Of the machine, in the 250 ms before. */
const delay = (toMs: number, delayMs: number, gate?: string): DelayEntry => ({
  kind: 'delay',
  process: gate === undefined ? 'engine 7' : `${gate}#1`,
  fromMs: toMs - 250,
  toMs,
  delayMs,
  ...(gate !== undefined && { gate }),
});
const final = (generation: number, status: number): RequestEntry =>
  request(generation, T + 90_000, status, { final: true });
/** Said to be published, and looked up 10 ms later. */
const published = (generation: number, atMs: number, isFound: boolean): Entry => ({
  kind: 'published',
  client: 'pos',
  generation,
  atMs,
  readMs: atMs + 10,
  isFound,
});
const memory = (...sizes: number[]): Entry[] =>
  sizes.map((bytes, atMs) => ({ kind: 'memory', process: 'gate-1#1', atMs, bytes }));

/** Without the changes that are lost because no test here asks a new process: that has its own table. */
function broken(entries: readonly Entry[]): string[] {
  const counts = check(entries, BOUNDS).filter(({ violations }) => violations.length > 0);
  return counts.map(({ rule }) => rule).filter((rule) => rule !== 'acknowledged change lost');
}

const LATE = 'dead token accepted after the bound';
const AGAIN = 'token accepted that the process had refused';
const GOOD = 'good token refused with 401';
const MISSING = 'published change not in the log';
const UNAVAILABLE = '503 while the source was healthy';
const SILENT = 'no response from a running gate';
const HISTORY = [change(1, 0), change(2, T)];

describe('the checker of the chaos run', () => {
  it.each<[string, Entry[], string[]]>([
    ['a dead token within the bound', [...HISTORY, request(1, T + 1_010, 200)], []],
    ['a dead token after the bound', [...HISTORY, request(1, T + 1_011, 200)], [LATE]],
    ['a dead token that is refused', [...HISTORY, request(1, T + 9_000, 401)], []],
    ['a dead token during a fault', [...HISTORY, fault(T + 500, T + 900), request(1, T + 5_010, 200)], []],
    ['a dead token after the longest bound', [...HISTORY, fault(T, T + 900), request(1, T + 5_011, 200)], [LATE]],
    ['a dead token of an older change too', [...HISTORY, change(3, T + 900), request(1, T + 1_500, 200)], [LATE]],
    [
      'a fault of another gate is no excuse',
      [...HISTORY, fault(T, T + 900, { gate: 'gate-11' }), request(1, T + 1_011, 200)],
      [LATE],
    ],
    ['a burst is no excuse', [...HISTORY, fault(T, T + 900, { isOutage: false }), request(1, T + 1_011, 200)], [LATE]],
    ['a change without a response promises nothing', [change(1, 0), unanswered(T), request(1, T + 9_000, 200)], []],
    ['refused, then accepted', [...HISTORY, request(1, T + 20, 401), request(1, T + 40, 200)], [AGAIN]],
    ['refused, then an older one accepted', [...HISTORY, request(2, T, 401), request(1, T + 40, 200)], [AGAIN, GOOD]],
    ['accepted while the refusal was on its way', [...HISTORY, request(1, T + 20, 401), request(1, T + 25, 200)], []],
    [
      'refused by one process, accepted by the next',
      [...HISTORY, request(1, T + 20, 401), request(1, T + 40, 200, { process: 'gate-1#2' })],
      [],
    ],
    ['a good token that is refused', [...HISTORY, request(2, T + 20, 401)], [GOOD]],
    ['a good token that is refused during a fault', [...HISTORY, fault(T, T + 90), request(2, T + 20, 401)], [GOOD]],
    ['a token whose change is on its way', [...HISTORY, request(1, T - 5, 401)], []],
    ['a good token before its change is sent', [...HISTORY, request(1, T - 11, 401)], [GOOD]],
    ['a token whose change has no response', [change(1, 0), unanswered(T), request(1, T + 20, 401)], []],
    ['a good token after a change without a response', [unanswered(0), change(2, T), request(2, T + 20, 401)], [GOOD]],
    ['a published change that is in the log', [...HISTORY, published(2, T, true)], []],
    ['a published change that is not in the log', [...HISTORY, published(2, T, false)], [MISSING]],
    ['a published change that nobody has made', [...HISTORY, published(3, T, true)], [MISSING]],
    ['a published change while the log may go back', [...HISTORY, fault(T, T + 90), published(2, T, false)], []],
    ['503 without a fault', [request(1, T, 503)], [UNAVAILABLE]],
    ['503 within the recovery', [fault(0, T - 3_000), request(1, T, 503)], []],
    ['503 after the recovery', [fault(0, T - 3_001), request(1, T, 503)], [UNAVAILABLE]],
    ['503 before the fault', [fault(T + 11, T + 90), request(1, T, 503)], [UNAVAILABLE]],
    ['503 while another gate has a fault', [fault(T, T + 90, { gate: 'gate-2' }), request(1, T, 503)], [UNAVAILABLE]],
    ['503 while its gate has a fault', [fault(T, T + 90, { gate: 'gate-1' }), request(1, T, 503)], []],
    ['503 while the engine is stalled', [delay(T, 1_001), request(1, T, 503)], []],
    ['503 after delays that are no stall', [delay(T - 250, 500), delay(T, 500), request(1, T, 503)], [UNAVAILABLE]],
    ['503 after delays that together are a stall', [delay(T - 3_999, 500), delay(T, 501), request(1, T, 503)], []],
    ['503 after delays too far apart', [delay(T - 4_000, 1_000), delay(T, 1_000), request(1, T, 503)], [UNAVAILABLE]],
    ['503 within the recovery from a stall', [delay(T - 3_000, 1_001), request(1, T, 503)], []],
    ['503 after the recovery from a stall', [delay(T - 3_001, 1_001), request(1, T, 503)], [UNAVAILABLE]],
    ['503 before the stall', [delay(T + 261, 1_001), request(1, T, 503)], [UNAVAILABLE]],
    ['503 while its gate is stalled', [delay(T, 1_001, 'gate-1'), request(1, T, 503)], []],
    ['503 while another gate is stalled', [delay(T, 1_001, 'gate-2'), request(1, T, 503)], [UNAVAILABLE]],
    [
      '503 after delays of several processes',
      [delay(T, 600, 'gate-1'), delay(T, 600), request(1, T, 503)],
      [UNAVAILABLE],
    ],
    ['no response while its gate is stalled', [delay(T, 1_001, 'gate-1'), request(1, T, 0)], []],
    ['a published change that is lost in a stall', [...HISTORY, delay(T, 1_001), published(2, T, false)], [MISSING]],
    ['no response without a fault', [request(1, T, 0)], [SILENT]],
    ['no response during a fault', [fault(T, T + 90), request(1, T, 0)], []],
    ['a 500', [request(1, T, 500)], ['other status than 200, 401, 503']],
    ['a crash', [{ kind: 'crash', process: 'gate-1#1', atMs: T, detail: 'SIGSEGV' }], ['crash']],
    ['memory that grows', memory(200, 100, 150, 150, 201, 300), ['memory grown']],
    ['memory that falls back', memory(200, 100, 999, 999, 999, 150), []],
  ])('%s', (_, entries, rules) => {
    expect(broken(entries).sort()).toEqual([...rules].sort());
  });

  it.each<[string, Entry[], string[]]>([
    ['in force in a new process', [final(1, 401)], []],
    ['accepted by a new process', [final(1, 200)], ['pos: 200']],
    ['a new process that cannot tell', [final(1, 503)], ['pos: 503']],
    ['in force in one new process of two', [final(1, 401), final(1, 200)], ['pos: 401, 200']],
    ['a new process was asked about the current token only', [final(2, 200)], ['pos: not asked']],
    ['a running process does not count', [request(1, T + 90, 401)], ['pos: not asked']],
  ])('acknowledged change: %s', (_, entries, violations) => {
    const counts = check([...HISTORY, ...entries], BOUNDS);
    expect(counts.find(({ rule }) => rule === 'acknowledged change lost')).toEqual({
      rule: 'acknowledged change lost',
      checked: 1,
      violations,
    });
  });

  it('says which response broke the rule', () => {
    const [late] = check([...HISTORY, request(1, T + 2_010, 200)], BOUNDS);
    expect(late).toEqual({
      rule: LATE,
      checked: 1,
      violations: ['1970-01-01T00:01:42.010Z gate-1#1: 200 for pos of generation 1: 1000 ms after the bound'],
    });
  });

  it('counts the stalls, and the responses that only they explain', () => {
    const entries = [
      ...[delay(T, 1_001), delay(T + 250, 250), delay(T + 9_000, 999), delay(T + 9_000, 1_001, 'gate-1')],
      ...[request(1, T, 503), fault(T + 8_000, T + 9_000, { gate: 'gate-1' }), request(1, T + 9_000, 503)],
    ];
    const { stalls, explained } = stallsIn(entries, BOUNDS);
    expect(stalls.map(({ name, gate, fromMs, toMs }) => [name, gate, fromMs - T, toMs - T])).toEqual([
      ['engine 7 stalled', undefined, -250, 250],
      ['gate-1#1 stalled', 'gate-1', 8_750, 9_000],
    ]);
    expect(explained).toBe(1);
  });

  it('sees no growth in too few samples', () => {
    expect(growth(memory(1, 900) as { bytes: number }[])).toBe(0);
  });
});
