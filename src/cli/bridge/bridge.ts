import { startPublisher } from 'tillgate/generations';
import type { Change, GenerationSource, Publisher } from 'tillgate/generations';
import {
  APPENDABLE_SOURCE,
  ask,
  dependencies,
  describeFailure,
  errorText,
  keptMsOf,
  notify,
  option,
  Outage,
  readOptions,
  requireChange,
  TOKEN_AGE_OPTION,
} from 'tillgate/internal';
import type { TableOf, Timer } from 'tillgate/internal';
import type { Dependencies } from 'tillgate';

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
  readonly cursor: Cursor;
  readonly changes: readonly Change[];
}

/** Options of a bridge. */
export interface BridgeOptions<Cursor> extends Pick<Dependencies, 'logger' | 'clock' | 'schedule' | 'random'> {
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

const BRIDGE_OPTIONS = {
  reports: option.required(
    option.withMethods<ChangeReports<unknown>>(['read'], 'reports of changes, such as keycloakChanges()'),
  ),
  source: APPENDABLE_SOURCE,
  state: option.required(option.withMethods<BridgeOptions<unknown>['state']>(['load', 'save'], '{ load, save }')),
  pollMs: option.number({ unit: 'ms', min: 1 }, 1_000),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  ...dependencies('clock', 'schedule', 'logger', 'random'),
} satisfies TableOf<BridgeOptions<unknown>>;

const PAUSES = { firstMs: 1_000, longestMs: 30_000 };

/**
 * Publishes each change that an authorization server reports: tokens issued up to the change are refused, `iat` included.
 * A change is saved before it is published, so no restart and no wiped log loses one, also of a client that was deleted
 * since.
 *
 * @throws TypeError when an option is wrong
 */
export function startBridge<Cursor>(options: BridgeOptions<Cursor>): Bridge {
  const given = readOptions('startBridge', options, BRIDGE_OPTIONS);
  const { reports, source, state, pollMs, maxTokenAgeSeconds, clock, schedule, logger, random } = given;
  let record: ReadonlyMap<string, number> = new Map();
  let cursor: unknown;
  let publisher: Publisher | undefined;
  let published = 0;
  const outage = new Outage(PAUSES, clock, random);
  let lastReadMs: number | undefined;
  let timer: Timer | undefined;
  let closed = false;
  let markReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (markReady = resolve));

  /** The record comes first: the publisher begins with it. */
  async function open(): Promise<Publisher> {
    const saved = await ask(() => state.load());
    cursor = saved?.cursor;
    record = new Map(saved?.changes);
    return startPublisher({ source, changes: () => record, maxTokenAgeSeconds, clock, schedule, random, logger });
  }

  async function follow(): Promise<void> {
    const log = (publisher ??= await open());
    const found = await ask(() => reports.read(cursor));
    for (const detail of found.problems ?? []) logger.warn({ detail }, 'a change of a credential cannot be published');
    // Issue times are whole seconds or ms: a token of the same instant dies too.
    const all = found.changes.map(({ clientId, changedAtMs }) => [clientId, changedAtMs + 1] as const);
    const changes = all.filter(isNew).sort((one, other) => one[1] - other[1]);
    if (found.cursor !== cursor || changes.length > 0) {
      const oldestMs = clock() - keptMsOf(maxTokenAgeSeconds);
      const kept = [...new Map([...record, ...changes])].filter(([, generation]) => generation >= oldestMs);
      await ask(() => state.save({ cursor: found.cursor, changes: kept }));
      record = new Map(kept);
    }
    ({ cursor } = found);
    const publishing = changes.map(async ([clientId, generation]) => {
      const fields = { clientId, changedAtMs: generation - 1, published: await log.publish(clientId, generation) };
      published++;
      logger.info(fields, 'published: tokens issued before the change are refused');
    });
    await Promise.all(publishing);
  }

  /** A change that cannot be published is told, and must not stop the others. */
  function isNew(change: Change): boolean {
    try {
      requireChange(change, clock());
      return change[1] > (record.get(change[0]) ?? -1);
    } catch (error) {
      logger.warn({ detail: (error as Error).message }, 'a change of a credential cannot be published');
      return false;
    }
  }

  async function poll(): Promise<void> {
    const announce = (fields: object): void =>
      logger.info({ published, ...fields }, 'following the changes of credentials');
    let pauseMs = pollMs;
    try {
      await follow();
      if (lastReadMs === undefined && outage.failures === 0) announce({});
      outage.end(announce);
      lastReadMs = clock();
      publisher?.ready().then(markReady, () => undefined);
    } catch (error) {
      pauseMs = outage.fail(describeFailure(error), (failure) => {
        logger.warn(failure, 'changes of credentials cannot be followed, it is retried');
      });
    }
    if (closed) return publisher?.close();
    timer = schedule(poll, pauseMs);
  }

  notify(poll, (error) => logger.error({ error: errorText(error) }, 'changes of credentials are no longer followed'));
  return {
    ready: () => ready,
    status() {
      const log = publisher?.status();
      const isFailing = outage.failures > 0 || log?.state === 'failing';
      const error = outage.lastError ?? log?.lastError;
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
