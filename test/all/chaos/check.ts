import type { ChangeEntry, DelayEntry, Entry, FaultEntry, MemoryEntry, PublishedEntry, RequestEntry } from './ledger';

/** The bounds that the documentation promises, for the settings of a run; in ms. */
export interface Bounds {
  /** After the acknowledgement of a change, while publisher and log can be reached. */
  readonly healthyMs: number;
  /** After the acknowledgement of a change, whatever fails. */
  readonly anyFaultMs: number;
  /** After the end of a fault, until no request is refused with 503. */
  readonly recoveryMs: number;
  /**
   * A process that the machine gives no time for longer than this, in total within a period, is stalled like by SIGSTOP: a fault, from
   * the first to the last of those delays.
   */
  readonly stall: { readonly longerThanMs: number; readonly withinMs: number };
  /** Longest growth of one process's memory, in bytes. */
  readonly growthBytes: number;
}

/** A count: of so many cases that were checked, those that break the rule. */
export interface Count {
  readonly rule: string;
  readonly checked: number;
  readonly violations: readonly string[];
}

type Acknowledged = ChangeEntry & Required<Pick<ChangeEntry, 'ack'>>;

/** 503 without a fault: what a run on a machine that is too busy shows first. */
const UNAVAILABLE = '503 while the source was healthy';

/** Counts what must not happen in a run; a pure function of its ledger. */
export function check(entries: readonly Entry[], bounds: Bounds): readonly Count[] {
  const run = readRun(entries, bounds);
  const requests = run.requests.filter(({ final }) => !final);
  const dead = requests.filter((request) => changesSince(request, run).length > 0);
  const good = requests.filter((request) => isGood(request, run));
  const memory = [...groupBy(run.memory, ({ process }) => process)];
  return [
    count('dead token accepted after the bound', dead, (request) => acceptedLate(request, run, bounds)),
    count('token accepted that the process had refused', processesOf(requests), acceptedAgain),
    count('good token refused with 401', good, (request) => (request.status === 401 ? describe(request) : undefined)),
    count('published change not in the log', run.published, (change) => notInLog(change, run)),
    count(UNAVAILABLE, requests, (request) => healthy(request, [503], run, bounds)),
    count('no response from a running gate', requests, (request) => healthy(request, [0], run, bounds)),
    count('other status than 200, 401, 503', requests, ({ status, process }) =>
      [0, 200, 401, 503].includes(status) ? undefined : `${status} from ${process}`,
    ),
    count('acknowledged change lost', [...run.changes], ([client, changes]) => lost(client, changes, run)),
    count('crash', run.crashes, ({ process, detail }) => `${process}: ${detail}`),
    count('memory grown', memory, ([process, samples]) => {
      const grownBytes = growth(samples);
      return grownBytes > bounds.growthBytes ? `${process}: ${Math.round(grownBytes / 1e6)} MB` : undefined;
    }),
  ];
}

/** The stalls of a run, and how many responses with 503 nothing else explains. */
export function stallsIn(
  entries: readonly Entry[],
  bounds: Bounds,
): { readonly stalls: readonly FaultEntry[]; readonly explained: number } {
  const unexplained = (among: readonly Entry[]): number =>
    check(among, bounds).find(({ rule }) => rule === UNAVAILABLE)?.violations.length ?? 0;
  const delays = entries.filter((entry): entry is DelayEntry => entry.kind === 'delay');
  const explained = unexplained(entries.filter(({ kind }) => kind !== 'delay')) - unexplained(entries);
  return { stalls: stallsOf(delays, bounds), explained };
}

function count<Case>(rule: string, cases: readonly Case[], judge: (one: Case) => string | undefined): Count {
  return { rule, checked: cases.length, violations: cases.flatMap((one) => judge(one) ?? []) };
}

interface Run {
  readonly requests: readonly RequestEntry[];
  /** While the log could not go back. */
  readonly published: readonly PublishedEntry[];
  readonly faults: readonly FaultEntry[];
  readonly crashes: readonly Extract<Entry, { kind: 'crash' }>[];
  readonly memory: readonly MemoryEntry[];
  /** By client, in the order in which they were sent. */
  readonly changes: ReadonlyMap<string, readonly ChangeEntry[]>;
}

function readRun(entries: readonly Entry[], bounds: Bounds): Run {
  const of = <Kind extends Entry['kind']>(kind: Kind): Extract<Entry, { kind: Kind }>[] =>
    entries.filter((entry): entry is Extract<Entry, { kind: Kind }> => entry.kind === kind);
  const made = of('fault');
  const changes = groupBy(of('change'), ({ client }) => client);
  for (const list of changes.values()) list.sort((one, other) => one.sentMs - other.sentMs);
  const published = of('published').filter(({ atMs, readMs }) => !outageIn(atMs - LOST_MS, readMs, '', made));
  const faults = [...made, ...stallsOf(of('delay'), bounds)];
  return { requests: of('request'), published, faults, crashes: of('crash'), memory: of('memory'), changes };
}

/** The stalls of a run; those that overlap are one. */
function stallsOf(delays: readonly DelayEntry[], { stall }: Bounds): readonly FaultEntry[] {
  return [...groupBy(delays, ({ process }) => process)].flatMap(([process, own]) => {
    const stalls: FaultEntry[] = [];
    for (const { toMs, gate } of own) {
      const near = own.filter((one) => one.toMs <= toMs && one.toMs > toMs - stall.withinMs);
      if (near.reduce((sum, { delayMs }) => sum + delayMs, 0) <= stall.longerThanMs) continue;
      const fromMs = Math.min(...near.map((one) => one.fromMs));
      const before = stalls.at(-1);
      const isSame = before !== undefined && before.toMs >= fromMs;
      if (isSame) stalls.pop();
      const name = `${process} stalled`;
      stalls.push({
        kind: 'fault',
        name,
        fromMs: isSame ? before.fromMs : fromMs,
        toMs,
        isOutage: true,
        ...(gate && { gate }),
      });
    }
    return stalls;
  });
}

/** An engine that is killed may lose what it has acknowledged in the second before. */
const LOST_MS = 1_000;

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

function acknowledged(changes: readonly ChangeEntry[] = []): readonly Acknowledged[] {
  return changes.filter((change): change is Acknowledged => change.ack !== undefined);
}

/** The changes that make a token dead, and were acknowledged before it was sent. */
function changesSince({ client, generation, sentMs }: RequestEntry, run: Run): readonly Acknowledged[] {
  return acknowledged(run.changes.get(client)).filter(({ ack }) => ack.generation > generation && ack.atMs < sentMs);
}

function acceptedLate(request: RequestEntry, run: Run, bounds: Bounds): string | undefined {
  if (request.status !== 200) return undefined;
  const lates = changesSince(request, run).map(({ ack: { atMs } }) => {
    const isHealthy = !outageIn(atMs - bounds.recoveryMs, atMs + bounds.healthyMs, request.process, run.faults);
    return request.sentMs - atMs - (isHealthy ? bounds.healthyMs : bounds.anyFaultMs);
  });
  const lateMs = Math.max(...lates);
  return lateMs > 0 ? `${describe(request)}: ${Math.round(lateMs)} ms after the bound` : undefined;
}

function processesOf(requests: readonly RequestEntry[]): readonly (readonly RequestEntry[])[] {
  return [...groupBy(requests, ({ process, client }) => `${process} ${client}`).values()];
}

/** A response that was sent before a refusal arrived proves nothing. */
function acceptedAgain(requests: readonly RequestEntry[]): string | undefined {
  const refused = requests.filter(({ status }) => status === 401);
  const again = requests.find(
    ({ status, generation, sentMs }) =>
      status === 200 && refused.some((other) => other.generation >= generation && other.receivedMs < sentMs),
  );
  return again && describe(again);
}

/** A token is good until the next change of its client is sent, also if nobody knows what became of that. */
function isGood({ client, generation, receivedMs }: RequestEntry, run: Run): boolean {
  const changes = run.changes.get(client) ?? [];
  const own = changes.findIndex(({ ack }) => ack?.generation === generation);
  return own >= 0 && (changes[own + 1]?.sentMs ?? Infinity) > receivedMs;
}

function healthy(request: RequestEntry, statuses: readonly number[], run: Run, bounds: Bounds): string | undefined {
  if (!statuses.includes(request.status)) return undefined;
  const isOutage = outageIn(request.sentMs - bounds.recoveryMs, request.receivedMs, request.process, run.faults);
  return isOutage ? undefined : describe(request);
}

function notInLog({ client, generation, atMs, isFound }: PublishedEntry, run: Run): string | undefined {
  const isKnown = (run.changes.get(client) ?? []).some(({ ack }) => ack === undefined || ack.generation >= generation);
  if (isFound && isKnown) return undefined;
  return `${new Date(atMs).toISOString()} ${client} of generation ${generation}${isKnown ? '' : ', which nobody has made'}`;
}

/** Whether a process had a fault in a period; none in particular where it has no name. */
function outageIn(fromMs: number, toMs: number, process: string, faults: readonly FaultEntry[]): boolean {
  return faults.some(
    (fault) =>
      fault.isOutage &&
      fault.fromMs <= toMs &&
      fault.toMs >= fromMs &&
      (fault.gate === undefined || process.startsWith(`${fault.gate}#`)),
  );
}

/** A change is in force where a new process refuses a token from before it; without that evidence it counts as lost. */
function lost(client: string, changes: readonly ChangeEntry[], run: Run): string | undefined {
  const highest = Math.max(0, ...acknowledged(changes).map(({ ack }) => ack.generation));
  if (highest === 0) return undefined;
  const asked = run.requests.filter((one) => one.final && one.client === client && one.generation < highest);
  const isInForce = asked.length > 0 && asked.every(({ status }) => status === 401);
  return isInForce ? undefined : `${client}: ${asked.map(({ status }) => status).join(', ') || 'not asked'}`;
}

/** From the lowest of the first third to the lowest of the last third: garbage that is not collected yet is no growth. */
export function growth(samples: readonly Pick<MemoryEntry, 'bytes'>[]): number {
  const third = Math.floor(samples.length / 3);
  if (third === 0) return 0;
  const lowest = (part: typeof samples): number => Math.min(...part.map(({ bytes }) => bytes));
  return lowest(samples.slice(-third)) - lowest(samples.slice(0, third));
}

function describe({ process, client, generation, sentMs, status }: RequestEntry): string {
  return `${new Date(sentMs).toISOString()} ${process}: ${status} for ${client} of generation ${generation}`;
}
