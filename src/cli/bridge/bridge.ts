import { startPublisher, type Publisher, type PublisherOptions } from '@tillgate/stores';
import { describeFailure, isEarly, type Change, type GenerationSource, type Timer } from 'tillgate/generations';
import {
  callUnwaited,
  dependencies,
  errorText,
  keptMsOf,
  option,
  Outage,
  readOptions,
  TOKEN_AGE_OPTION,
} from 'tillgate/internal';
import type { TableOf, ValuesOf } from 'tillgate/internal';

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

const BRIDGE_OPTIONS = {
  reports: option.required(
    option.withMethods<ChangeReports<unknown>>(['read'], 'reports of changes, such as keycloakChanges()'),
  ),
  source: option.required(
    option.withMethods<GenerationSource & Required<Pick<GenerationSource, 'append'>>>(
      ['append', 'reader'],
      'a generation source with append()',
    ),
  ),
  state: option.required(option.withMethods<BridgeOptions<unknown>['state']>(['load', 'save'], '{ load, save }')),
  pollMs: option.number({ unit: 'milliseconds', min: 1, integer: true }, 1_000),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  ...dependencies('clock', 'schedule', 'logger'),
} satisfies TableOf<BridgeOptions<unknown>>;

const PAUSES = { firstMs: 1_000, longestMs: 30_000 };
/** How far ahead of this clock a change may lie, in ms: one of more is wrong itself. */
const MAX_AHEAD_MS = 3_600_000;

/**
 * Publishes each change that an authorization server reports: tokens issued up to the change are refused, `iat` included.
 * A change is saved before it is published, so no restart and no wiped log loses one, also of a client that was deleted
 * since.
 *
 * @throws TypeError when an option is wrong
 */
export function startBridge<Cursor>(options: BridgeOptions<Cursor>): Bridge {
  const given = readOptions('startBridge', options, BRIDGE_OPTIONS);
  const bridge = new ChangeBridge(given);
  const failed = (error: unknown): void =>
    given.logger.error({ error: errorText(error) }, 'changes of credentials are no longer followed');
  callUnwaited(() => bridge.poll(), failed);
  return { ready: () => bridge.ready, status: () => bridge.status(), close: () => bridge.close() };
}

/** Reads the reports again and again, and publishes what is new in them. */
class ChangeBridge {
  readonly #options: ValuesOf<typeof BRIDGE_OPTIONS>;
  readonly #outage: Outage;
  /** The generation of each client that was changed. */
  #record: ReadonlyMap<string, number> = new Map();
  #cursor: unknown;
  #publisher: Publisher | undefined;
  #published = 0;
  #lastReadMs: number | undefined;
  #timer: Timer | undefined;
  #isClosed = false;
  #resolveReady = (): void => undefined;
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));

  constructor(options: ValuesOf<typeof BRIDGE_OPTIONS>) {
    this.#options = options;
    // There is one bridge: none to keep out of step with.
    this.#outage = new Outage(PAUSES, options.clock, () => 0);
  }

  status(): ReturnType<Bridge['status']> {
    const { failures, lastError } = this.#outage;
    const log = this.#publisher?.status();
    const error = lastError ?? log?.lastError;
    const isStarting = this.#lastReadMs === undefined || log?.state === 'starting';
    return {
      state: failures > 0 || log?.state === 'failing' ? 'failing' : isStarting ? 'starting' : 'following',
      published: this.#published,
      pending: log?.pending ?? 0,
      ...(this.#lastReadMs !== undefined && { ageMs: this.#options.clock() - this.#lastReadMs }),
      ...(error !== undefined && { lastError: error }),
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#publisher?.close();
  }

  async poll(): Promise<void> {
    const { pollMs, clock, schedule, logger } = this.#options;
    let pauseMs = pollMs;
    try {
      await this.#follow();
      const isNews = this.#lastReadMs === undefined || this.#outage.failures > 0;
      if (isNews) logger.info({ published: this.#published }, 'following the changes of credentials');
      this.#outage.end(() => undefined);
      this.#lastReadMs = clock();
      void this.#publisher?.ready().then(this.#resolveReady);
    } catch (error) {
      // Messages of other libraries can hold a connection string.
      const label = error instanceof ReportError ? error.message : describeFailure(error);
      pauseMs = this.#outage.fail(label, (fields) =>
        logger.warn(fields, 'changes of credentials cannot be followed, it is retried'),
      );
    }
    if (this.#isClosed) return this.#publisher?.close();
    this.#timer = schedule(() => this.poll(), pauseMs);
  }

  async #follow(): Promise<void> {
    const { reports, clock } = this.#options;
    const publisher = (this.#publisher ??= await this.#open());
    const found = await reports.read(this.#cursor);
    for (const detail of found.problems ?? []) this.#reportProblem(detail);
    // Issue times are whole seconds or ms: a token of the same instant dies too.
    const reported = found.changes.map(({ clientId, changedAtMs }) => [clientId, changedAtMs + 1] as const);
    const fresh = reported.filter((change) => this.#isNew(change));
    // This clock is slow, or was set back: the publisher keeps them until their time has come, and they are read again.
    const early = fresh.filter((change) => isEarly(change, clock()));
    await Promise.all(early.map((change) => publisher.publish(...change)));
    // One change can appear as several events: the last one counts.
    const due = fresh.filter((change) => !early.includes(change));
    const changes = [...new Map(due.sort((one, other) => one[1] - other[1]))];
    await this.#save(changes, early.length > 0 ? this.#cursor : found.cursor);
    await Promise.all(changes.map((change) => this.#publish(publisher, change)));
  }

  /** The record comes first: the publisher begins with it. */
  async #open(): Promise<Publisher> {
    const { source, state, maxTokenAgeSeconds, clock, schedule, logger } = this.#options;
    const saved = await state.load();
    this.#cursor = saved?.cursor;
    this.#record = new Map(saved?.changes);
    return startPublisher({ source, changes: () => this.#record, maxTokenAgeSeconds, clock, schedule, logger });
  }

  async #save(changes: readonly Change[], cursor: unknown): Promise<void> {
    const { state, clock, maxTokenAgeSeconds } = this.#options;
    if (cursor !== this.#cursor || changes.length > 0) {
      const all = [...new Map([...this.#record, ...changes])];
      // By the earlier one of two clocks, this one and that of the events: the one that is ahead must not drop what is needed.
      const newestMs = all.reduce((newest, [, generation]) => Math.max(newest, generation), 0);
      const oldestMs = Math.min(clock(), newestMs) - keptMsOf(maxTokenAgeSeconds);
      const kept = all.filter(([, generation]) => generation >= oldestMs);
      await state.save({ cursor, changes: kept });
      this.#record = new Map(kept);
    }
    this.#cursor = cursor;
  }

  async #publish(publisher: Publisher, [clientId, generation]: Change): Promise<void> {
    const published = await publisher.publish(clientId, generation);
    this.#published++;
    const fields = { clientId, changedAtMs: generation - 1, published };
    this.#options.logger.info(fields, 'published: tokens issued before the change are refused');
  }

  /** A change that cannot be published is reported, and must not stop the others. */
  #isNew(change: Change): boolean {
    const problem = problemOf(change, this.#options.clock());
    if (problem !== undefined) this.#reportProblem(problem);
    return problem === undefined && change[1] > (this.#record.get(change[0]) ?? -1);
  }

  #reportProblem(detail: string): void {
    this.#options.logger.warn({ detail }, 'a change of a credential cannot be published');
  }
}

/** Why a change cannot be published. A lone surrogate and U+0000 would become another client id in a store. */
function problemOf([clientId, generation]: Change, nowMs: number): string | undefined {
  if (typeof clientId !== 'string' || !/^[^\0\p{Surrogate}]{1,2048}$/u.test(clientId) || clientId === '*') {
    return 'its client id is not a text of 1 to 2048 characters, or is "*"';
  }
  if (!Number.isSafeInteger(generation) || generation < 0) return 'its time is not a number of milliseconds';
  return generation > nowMs + MAX_AHEAD_MS ? 'its time lies in the future' : undefined;
}
