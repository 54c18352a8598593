import { startPublisher } from '@tillgate/stores';
import type { Change, GenerationSource } from 'tillgate/generations';
import type { Publisher, PublisherOptions } from '@tillgate/stores';
import type { Logger } from 'tillgate';

/** A change of a client credential that discards the tokens issued before. */
export interface CredentialChange {
  readonly clientId: string;
  /** Time of the change, by the clock of the authorization server, in ms since the epoch. */
  readonly changedAtMs: number;
}

/** The changes that an authorization server reports: its admin events, log stream or audit log. */
export interface ChangeReports<Cursor> {
  /**
   * Resolves with the changes since `cursor`, or with all that the server still knows without one, and with the cursor to
   * continue from. May repeat changes, must not leave one out. Rejects when it cannot tell.
   */
  read(cursor: Cursor | undefined): Promise<{
    readonly changes: readonly CredentialChange[];
    readonly cursor: Cursor;
    /** What the server reported and cannot be published, for the log. */
    readonly problems?: readonly string[];
  }>;
}

/** What a bridge keeps, so that it continues where it stopped: the cursor, and its record of changes. */
export interface BridgeState<Cursor> {
  /** `undefined`: everything is read again. */
  readonly cursor: Cursor | undefined;
  readonly changes: readonly Change[];
}

/** Options of a bridge. */
export interface BridgeOptions<Cursor> extends Pick<PublisherOptions, 'clock' | 'schedule'> {
  /** Where the bridge reports to. Default: the console. */
  readonly logger?: Exclude<PublisherOptions['logger'], false>;
  readonly reports: ChangeReports<Cursor>;
  /** The log in which changes are published; the bridge is its only publisher. */
  readonly source: GenerationSource;
  /** Loads and saves the state, durably. */
  readonly state: {
    load(): Promise<BridgeState<Cursor> | undefined>;
    save(state: BridgeState<Cursor>): Promise<void>;
  };
  /** Pause between reads of the reports, in ms. Default 1000. */
  readonly pollMs?: number | undefined;
  /** `maxTokenAgeSeconds` of the gates that read. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
}

/** A running bridge. */
export interface Bridge {
  /** Resolves once the reports have been read and published for the first time; never rejects. */
  ready(): Promise<void>;
  status(): {
    readonly state: 'starting' | 'following' | 'failing';
    /** Changes published so far. */
    readonly published: number;
    /** Changes that are not in the log yet. */
    readonly pending: number;
    /** Milliseconds since the reports were last read completely. */
    readonly ageMs?: number;
    readonly lastError?: string;
  };
  close(): void;
}

/** What a bridge has to say of changes that cannot be read. The message is logged: it holds no secret and nothing of a response. */
export class ReportError extends Error {
  override readonly name = 'ReportError';
}

/** What each option of a factory must be, and whether a value is that. */
type OptionChecks = Readonly<Record<string, readonly [expected: string, isRight: (value: unknown) => boolean]>>;

/** Throws a TypeError about the first option that is unknown or wrong. */
export function checkOptions(factory: string, options: object, checks: OptionChecks): void {
  const known = Object.keys(checks);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`${factory}(): unknown option ${JSON.stringify(unknown)}; known are ${known.join(', ')}`);
  }
  for (const [name, [expected, isRight]] of Object.entries(checks)) {
    const value: unknown = Object.hasOwn(options, name) ? options[name as never] : undefined;
    if (!isRight(value)) throw new TypeError(`${factory}(): option "${name}" must be ${expected}`);
  }
}

/** Checks of options that may be left out. */
export const FUNCTION = ['a function', (value: unknown) => value === undefined || typeof value === 'function'] as const;
export const COUNT = [
  'a whole number from 1',
  (value: unknown) => value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1),
] as const;

function hasMethods(...names: readonly string[]): (value: unknown) => boolean {
  return (value) => names.every((name) => typeof (Object(value) as Record<string, unknown>)[name] === 'function');
}

const BRIDGE_CHECKS: OptionChecks = {
  reports: ['reports of changes, such as keycloakChanges()', hasMethods('read')],
  source: ['a generation source with append()', hasMethods('append', 'reader')],
  state: ['{ load, save }', hasMethods('load', 'save')],
  logger: ['a logger', (value) => value === undefined || hasMethods('info', 'warn', 'error')(value)],
  pollMs: COUNT,
  maxTokenAgeSeconds: COUNT,
  clock: FUNCTION,
  schedule: FUNCTION,
};

const HOUR_SECONDS = 3_600;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** How far ahead of this clock a change may lie, in ms, as for a log. One of more than an hour is wrong itself. */
const TOLERANCE_MS = 60_000;

const CONSOLE: Logger = {
  info: (fields, message) => console.info(message, fields),
  warn: (fields, message) => console.warn(message, fields),
  error: (fields, message) => console.error(message, fields),
};

function scheduleUnref(task: () => void, delayMs: number): { cancel(): void } {
  const timeout = setTimeout(task, delayMs).unref();
  return { cancel: () => clearTimeout(timeout) };
}

/**
 * Publishes each change that an authorization server reports: tokens issued up to the change are refused, `iat` included.
 * A change is saved before it is published, so no restart and no wiped log loses one, also of a client that was deleted
 * since.
 *
 * @throws TypeError when an option is wrong
 */
export function startBridge<Cursor>(options: BridgeOptions<Cursor>): Bridge {
  checkOptions('startBridge', options, BRIDGE_CHECKS);
  const { reports, source, state, pollMs = 1_000, maxTokenAgeSeconds = 86_400, logger = CONSOLE } = options;
  const { clock = Date.now, schedule = scheduleUnref } = options;
  let record: ReadonlyMap<string, number> = new Map();
  let cursor: Cursor | undefined;
  let publisher: Publisher | undefined;
  let published = 0;
  /** Reads in a row that have failed, and why the last one did. */
  let failures = 0;
  let lastError: string | undefined;
  let lastReadMs: number | undefined;
  let timer: { cancel(): void } | undefined;
  let closed = false;
  let markReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (markReady = resolve));

  /** The record comes first: the publisher begins with it. */
  async function open(): Promise<Publisher> {
    const saved = await state.load();
    cursor = saved?.cursor;
    record = new Map(saved?.changes);
    const { logger: ofPublisher } = options;
    return startPublisher({
      source,
      changes: () => record,
      maxTokenAgeSeconds,
      clock,
      schedule,
      logger: ofPublisher,
    });
  }

  async function follow(): Promise<void> {
    const log = (publisher ??= await open());
    const found = await reports.read(cursor);
    for (const detail of found.problems ?? []) tellProblem(detail);
    // Issue times are whole seconds or ms: a token of the same instant dies too.
    const reported = found.changes.map(({ clientId, changedAtMs }) => [clientId, changedAtMs + 1] as const);
    const fresh = reported.filter(isNew);
    // This clock is slow, or was set back: the publisher keeps them until their time has come, and they are read again.
    const early = fresh.filter(isEarly);
    await Promise.all(early.map((change) => log.publish(...change)));
    const next = early.length > 0 ? cursor : found.cursor;
    // One change can appear as several events: the last one counts.
    const due = fresh.filter((change) => !early.includes(change));
    const changes = [...new Map(due.sort((one, other) => one[1] - other[1]))];
    if (next !== cursor || changes.length > 0) {
      const all = [...new Map([...record, ...changes])];
      // By the earlier one of two clocks, this one and that of the events: the one that is ahead must not drop what is needed.
      const newestMs = all.reduce((newest, [, generation]) => Math.max(newest, generation), 0);
      const oldestMs = Math.min(clock(), newestMs) - (maxTokenAgeSeconds + HOUR_SECONDS) * 1000;
      const kept = all.filter(([, generation]) => generation >= oldestMs);
      await state.save({ cursor: next, changes: kept });
      record = new Map(kept);
    }
    cursor = next;
    const publishing = changes.map(async ([clientId, generation]) => {
      const fields = { clientId, changedAtMs: generation - 1, published: await log.publish(clientId, generation) };
      published++;
      logger.info(fields, 'published: tokens issued before the change are refused');
    });
    await Promise.all(publishing);
  }

  function tellProblem(detail: string): void {
    logger.warn({ detail }, 'a change of a credential cannot be published');
  }

  /** A change that cannot be published is told, and must not stop the others. */
  function isNew(change: Change): boolean {
    const problem = problemOf(change, clock());
    if (problem !== undefined) tellProblem(problem);
    return problem === undefined && change[1] > (record.get(change[0]) ?? -1);
  }

  function isEarly([, generation]: Change): boolean {
    return generation > clock() + TOLERANCE_MS;
  }

  async function poll(): Promise<void> {
    let pauseMs = pollMs;
    try {
      await follow();
      if (lastReadMs === undefined || failures > 0) logger.info({ published }, 'following the changes of credentials');
      [failures, lastError, lastReadMs] = [0, undefined, clock()];
      void publisher?.ready().then(markReady);
    } catch (error) {
      lastError = labelOf(error);
      if (failures === 0)
        logger.warn({ detail: lastError }, 'changes of credentials cannot be followed, it is retried');
      pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++);
    }
    if (closed) return publisher?.close();
    timer = schedule(start, pauseMs);
  }

  /** A logger may throw; the next poll must come anyway. */
  function start(): void {
    poll().catch(() => {
      if (!closed) timer = schedule(start, LONGEST_PAUSE_MS);
    });
  }

  start();
  return {
    ready: () => ready,
    status() {
      const log = publisher?.status();
      const isFailing = failures > 0 || log?.state === 'failing';
      const error = lastError ?? log?.lastError;
      return {
        state: isFailing ? 'failing' : lastReadMs === undefined || log?.state === 'starting' ? 'starting' : 'following',
        published,
        pending: log?.pending ?? 0,
        ...(lastReadMs !== undefined && { ageMs: clock() - lastReadMs }),
        ...(error !== undefined && { lastError: error }),
      };
    },
    close() {
      closed = true;
      timer?.cancel();
      publisher?.close();
    },
  };
}

/** Why a change cannot be published. A lone surrogate and U+0000 would become another client id in a store. */
function problemOf([clientId, generation]: Change, nowMs: number): string | undefined {
  if (typeof clientId !== 'string' || !/^[^\0\p{Surrogate}]{1,2048}$/u.test(clientId) || clientId === '*') {
    return 'its client id is not a text of 1 to 2048 characters, or is "*"';
  }
  if (!Number.isSafeInteger(generation) || generation < 0) return 'its time is not a number of milliseconds';
  return generation > nowMs + HOUR_SECONDS * 1000 ? 'its time lies in the future' : undefined;
}

/** An error as the log may show it: messages of other libraries can hold a connection string. */
function labelOf(error: unknown): string {
  const { name = 'Error', code, message } = Object(error) as { name?: string; code?: unknown; message?: string };
  if (error instanceof ReportError || name === 'SourceError') return String(message);
  return typeof code === 'string' ? `${name} (${code})` : name;
}
