import { backOffMs, DAY_MS, systemClock, systemSchedule } from '../../core/clock';
import type { Timer } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { readOptions } from '../../core/options';
import { KEPT_LONGER_MS } from '../floors';
import { requireChange } from '../generation';
import type { Change, GenerationSource } from '../log';
import { startPublisher } from '../publisher';
import { describeFailure } from '../source-error';

/** A change of a client credential that discards the tokens issued before. */
export interface CredentialChange {
  readonly clientId: string;
  /** Time of the change, by the clock of the authorization server, in ms since the epoch. */
  readonly changedAtMs: number;
}

/** The changes that an authorization server reports: its admin events, log stream or audit log. */
export interface ChangeFeed<Cursor> {
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
  readonly feed: ChangeFeed<Cursor>;
  /** The log in which changes are published; the bridge is its only publisher. */
  readonly source: GenerationSource;
  /** Loads and saves the state, durably. */
  readonly state: {
    load(): Promise<BridgeState<Cursor> | undefined>;
    save(state: BridgeState<Cursor>): Promise<void>;
  };
  /** Pause between reads of the feed, in ms. Default 1000. */
  readonly pollMs?: number | undefined;
  /** Longest token age (`maxTokenAgeSeconds`) of the gates that read, in ms. Default 86400000. */
  readonly maxTokenAgeMs?: number | undefined;
}

/** A running bridge. */
export interface Bridge {
  /** Resolves once the feed has been read and published for the first time; never rejects. */
  ready(): Promise<void>;
  status(): {
    readonly state: 'starting' | 'following' | 'failing';
    /** Changes published so far. */
    readonly published: number;
    /** Changes that are not in the log yet. */
    readonly pending: number;
    /** Milliseconds since the feed was last read completely. */
    readonly ageMs?: number;
    readonly lastError?: string;
  };
  close(): void;
}

const NAMES = ['feed', 'source', 'state', 'pollMs', 'maxTokenAgeMs', 'logger', 'clock', 'schedule', 'random'] as const;
const PAUSES = { firstMs: 1_000, longestMs: 30_000 };

/**
 * Publishes each change that a feed reports: tokens issued up to the change are refused, `iat` included. A change is saved
 * before it is published, so no restart and no wiped log loses one, also of a client that was deleted since.
 *
 * @throws TypeError when an option is wrong
 */
export function startBridge<Cursor>(options: BridgeOptions<Cursor>): Bridge {
  const given = readOptions('startBridge', options, NAMES);
  const { feed, source, state, logger = consoleLogger } = options;
  if (typeof feed?.read !== 'function') given.refuse('feed', 'a feed of changes, such as keycloakChanges()');
  if (typeof state?.load !== 'function' || typeof state.save !== 'function') given.refuse('state', '{ load, save }');
  if (typeof source?.append !== 'function') given.refuse('source', 'a generation source with append()');
  const pollMs = given.number('pollMs', 1_000, { unit: 'ms', min: 1 });
  const maxTokenAgeMs = given.number('maxTokenAgeMs', DAY_MS, { unit: 'ms', min: 1_000, integer: true });
  const clock = given.callable('clock', systemClock);
  const schedule = given.callable('schedule', systemSchedule);
  const random = given.callable('random', Math.random);
  let record: ReadonlyMap<string, number> = new Map();
  let cursor: Cursor | undefined;
  let publisher: ReturnType<typeof startPublisher> | undefined;
  let published = 0;
  let failures = 0;
  let lastReadMs: number | undefined;
  let lastError: string | undefined;
  let timer: Timer | undefined;
  let closed = false;
  let markReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (markReady = resolve));

  /** The record comes first: the publisher begins with it. */
  async function open(): Promise<ReturnType<typeof startPublisher>> {
    const saved = await state.load();
    cursor = saved?.cursor;
    record = new Map(saved?.changes);
    return startPublisher({ source, changes: () => record, maxTokenAgeMs, clock, schedule, random, logger });
  }

  async function follow(): Promise<void> {
    const log = (publisher ??= await open());
    const found = await feed.read(cursor);
    for (const detail of found.problems ?? []) logger.warn({ detail }, 'a change of a credential cannot be published');
    // Issue times are whole seconds or ms: a token of the same instant dies too.
    const all = found.changes.map(({ clientId, changedAtMs }) => [clientId, changedAtMs + 1] as const);
    const changes = all.filter(isNew).sort((one, other) => one[1] - other[1]);
    if (found.cursor !== cursor || changes.length > 0) {
      const oldestMs = clock() - maxTokenAgeMs - KEPT_LONGER_MS;
      const kept = [...new Map([...record, ...changes])].filter(([, generation]) => generation >= oldestMs);
      await state.save({ cursor: found.cursor, changes: kept });
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
    try {
      await follow();
      if (failures > 0 || lastReadMs === undefined) logger.info({ published }, 'following the changes of credentials');
      [failures, lastError, lastReadMs] = [0, undefined, clock()];
      void publisher?.ready().then(markReady);
    } catch (error) {
      lastError = describeFailure(error);
      // Once per outage: it can last a night.
      if (++failures === 1) {
        logger.warn({ detail: lastError }, 'changes of credentials cannot be followed, it is retried');
      }
    }
    if (closed) return publisher?.close();
    timer = schedule(() => void poll(), failures > 0 ? backOffMs(failures, PAUSES, random) : pollMs);
  }

  void poll();
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
