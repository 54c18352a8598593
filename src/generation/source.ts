/** Lowest generation still accepted, for one client id. */
export type Floor = readonly [clientId: string, generation: number];

/** Result of a complete read of a source. */
export interface GenerationSnapshot {
  /** Every floor that moved at or after the requested time. More floors do no harm: they merge by max. */
  readonly floors: Iterable<Floor>;
  /** The source's own clock at the read, in ms since the epoch; the next read asks from here on. */
  readonly nowMs: number;
  /**
   * `sinceMs` of the next read, from a source that knows it exactly. Default: well before `nowMs`, for changes that
   * become visible late.
   */
  readonly resumeMs?: number;
  /**
   * The store is complete from this generation on: lower floors that are times may have been removed, because every
   * token that they discard has expired. Default: nothing is removed.
   */
  readonly completeFromMs?: number;
  /** Age of the floors at the read, in ms: of a source that follows another one. Default 0. */
  readonly ageMs?: number;
  /** Names of the relays that the floors came through, the nearest last. A relay that finds its own name refuses the read. */
  readonly via?: readonly string[];
}

/** Receives one page of a large response; the source waits for it before it asks for the next page. */
export type TakePage = (floors: Iterable<Floor>) => Promise<void>;

/**
 * Where floors come from: the extension point for any store. Polling `read` is enough for a source to be correct; `watch`
 * makes it fast.
 */
export interface GenerationSource {
  /**
   * Returns every floor that moved at or after `sinceMs` (the source's clock; 0 asks for everything).
   * Rejects when the response would be incomplete: the caller keeps what it has and counts the read as failed.
   *
   * @param takePage - for sources of many floors: takes them page by page while they arrive, in place of
   * `snapshot.floors`. Each page starts the caller's time limit anew.
   */
  read(sinceMs: number, takePage?: TakePage): Promise<GenerationSnapshot>;
  /**
   * Calls `wake` when something may have moved, and returns a function that stops it. A hint only: a source may
   * lose, repeat or reorder hints. Resolves once the watch is established; after a rejection there is polling only.
   * A watch that ends by itself calls `lost`, and the caller watches again after a pause.
   */
  watch?(wake: () => void, lost?: (error: unknown) => void): Promise<() => void>;
  /** Publishes a floor, durably: once resolved, every later `read` returns it. A lower number than the known one changes nothing. */
  publish?(clientId: string, generation: number): Promise<void>;
  /**
   * Proof that a store which can lose data holds every floor. With it, a process that starts refuses all tokens until
   * the sentinel is there. Left out by sources that cannot lose anything, and where no publisher writes one.
   */
  readonly sentinel?: GenerationSentinel | undefined;
  /** Releases connections and timers. */
  close?(): Promise<void>;
}

/**
 * The highest generation that the publisher has written completely, kept in the store next to the floors, so that it is
 * lost and restored together with them.
 *
 * The publisher of a store, one per store, does this every second while none of its floors is pending:
 *
 * 1. `read()`. If the sentinel is missing or lower than the one written last, the store was wiped, restored or failed
 *    over: publish again every floor that moved since then (every floor if it is missing).
 * 2. `write(next)` with `next = max(last + 1, now in ms)`.
 *
 * A process that starts reads the whole store and then waits until the sentinel has moved once, which proves that the
 * publisher has checked the store in the meantime. A sentinel that does not move is accepted after 2.5 s: then the
 * publisher is not running, and no generation can change.
 */
export interface GenerationSentinel {
  /** Resolves with the sentinel; `undefined` if the store has none. */
  read(): Promise<number | undefined>;
  /** Raises the sentinel, durably. A lower number than the stored one changes nothing. */
  write(generation: number): Promise<void>;
}

/** A source with every optional method, as made by `memoryGenerations()`, `redisGenerations()` and `postgresGenerations()`. */
export type PublishingSource = GenerationSource & Required<Pick<GenerationSource, 'watch' | 'publish' | 'close'>>;

/**
 * A source in the gate's own process that is asked on every request, so it is never stale. For tests, whose next line
 * must see a change.
 */
export interface LiveSource extends GenerationSource {
  floorOf(clientId: string): number | undefined;
}

/** Whether a source is a `LiveSource`. */
export function isLive(source: GenerationSource | undefined): source is LiveSource {
  const floorOf = (source as Partial<LiveSource> | undefined)?.floorOf;
  // A polluted prototype must not turn a source that has to be read into a live one.
  return typeof floorOf === 'function' && floorOf !== (Object.prototype as Partial<LiveSource>).floorOf;
}
