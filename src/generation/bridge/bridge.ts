import { backOffMs, systemClock, systemSchedule, withTimeLimit } from '../../core/clock';
import type { Timer } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { describeFailure, noResponse } from '../source-error';
import type { GenerationSource } from '../source';

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
  read(cursor: Cursor | undefined): Promise<{ readonly changes: readonly CredentialChange[]; readonly cursor: Cursor }>;
}

/** What a bridge keeps, so that it continues where it stopped. */
export interface BridgeState<Cursor> {
  readonly cursor: Cursor;
  /** The sentinel of the source after the last change; lower in the source means that it has lost floors. */
  readonly sentinel?: number | undefined;
}

/** Options of a bridge. */
export interface BridgeOptions<Cursor> extends Pick<Dependencies, 'logger' | 'clock' | 'schedule' | 'random'> {
  readonly feed: ChangeFeed<Cursor>;
  /** Where floors are published; needs `publish`. */
  readonly source: GenerationSource;
  /** Loads and saves the state, durably. */
  readonly state: {
    load(): Promise<BridgeState<Cursor> | undefined>;
    save(state: BridgeState<Cursor>): Promise<void>;
  };
  /** Pause between reads of the feed, in ms. Default 1000. */
  readonly pollMs?: number | undefined;
}

/** A running bridge. */
export interface Bridge {
  /** Resolves once the feed has been read and published for the first time; never rejects. */
  ready(): Promise<void>;
  status(): {
    readonly state: 'starting' | 'following' | 'failing';
    /** Floors published so far. */
    readonly published: number;
    /** Milliseconds since the feed was last read completely. */
    readonly ageMs?: number;
    readonly lastError?: string;
  };
  close(): void;
}

const TIMEOUT_MS = 5_000;
const PAUSES = { firstMs: 1_000, longestMs: 30_000 };

/**
 * Publishes each change that a feed reports as a floor: tokens issued up to the change are refused, `iat` included.
 * Every change is published at least once; the position is saved after that, so a restart repeats and loses none. Also
 * keeps the sentinel of the source, whose only publisher it must be: a source that lost floors gets all of them again.
 *
 * @throws TypeError when the source cannot be published to
 */
export function startBridge<Cursor>(options: BridgeOptions<Cursor>): Bridge {
  const { feed, source, state, pollMs = 1_000, logger = consoleLogger } = options;
  const { clock = systemClock, schedule = systemSchedule, random = Math.random } = options;
  if (!source.publish)
    throw new TypeError('startBridge(): option "source" can only be read, expected one with publish()');
  const publish = source.publish.bind(source);
  const { sentinel } = source;
  let position: BridgeState<Cursor> | undefined;
  let loaded = false;
  let published = 0;
  let failures = 0;
  let lastReadMs: number | undefined;
  let lastError: string | undefined;
  let timer: Timer | undefined;
  let closed = false;
  let markReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (markReady = resolve));

  const limited = <Value>(work: Promise<Value>): Promise<Value> =>
    withTimeLimit(work, TIMEOUT_MS, schedule, noResponse);

  async function follow(): Promise<void> {
    if (!loaded) position = await state.load();
    loaded = true;
    const found = sentinel && (await limited(sentinel.read()));
    const isComplete = !sentinel || (found !== undefined && found >= (position?.sentinel ?? 0));
    if (!isComplete && position)
      logger.warn({}, 'the source has lost generations, all known changes are published again');
    const { changes, cursor } = await feed.read(isComplete ? position?.cursor : undefined);
    for (const { clientId, changedAtMs } of changes) {
      await limited(publish(clientId, changedAtMs + 1));
      published++;
      logger.info({ clientId, changedAtMs }, 'published: tokens issued before the change are refused');
    }
    const next = Math.max((found ?? 0) + 1, (position?.sentinel ?? 0) + 1, clock());
    if (sentinel) await limited(sentinel.write(next));
    const isNew = position === undefined || changes.length > 0 || !isComplete;
    position = { cursor, sentinel: isNew ? next : position?.sentinel };
    if (isNew) await state.save(position);
  }

  async function poll(): Promise<void> {
    try {
      await follow();
      if (failures > 0 || lastReadMs === undefined) logger.info({ published }, 'following the changes of credentials');
      [failures, lastError, lastReadMs] = [0, undefined, clock()];
      markReady();
    } catch (error) {
      lastError = describeFailure(error);
      // Once per outage: it can last a night.
      if (++failures === 1)
        logger.warn({ detail: lastError }, 'changes of credentials cannot be followed, it is retried');
    }
    if (closed) return;
    timer = schedule(() => void poll(), failures > 0 ? backOffMs(failures, PAUSES, random) : pollMs);
  }

  void poll();
  return {
    ready: () => ready,
    status: () => ({
      state: failures > 0 ? 'failing' : lastReadMs === undefined ? 'starting' : 'following',
      published,
      ...(lastReadMs !== undefined && { ageMs: clock() - lastReadMs }),
      ...(lastError !== undefined && { lastError }),
    }),
    close() {
      closed = true;
      timer?.cancel();
    },
  };
}
