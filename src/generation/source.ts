/** Lowest generation still accepted, for one client id. */
export type Floor = readonly [clientId: string, generation: number];

/** What a complete read of a source answers. */
export interface GenerationSnapshot {
  /** Every floor that moved at or after the requested time. More is harmless: floors merge by max. */
  readonly floors: Iterable<Floor>;
  /** The source's own clock at the read, in ms since the epoch; the next read asks from here on. */
  readonly nowMs: number;
  /**
   * Where the next read asks from, by a source that knows it exactly. Default: well before `nowMs`, to leave room for
   * changes that become visible late.
   */
  readonly resumeMs?: number;
}

/**
 * Where floors come from: the extension point for any store. Polling `read` is the base line and alone makes a
 * source correct; `watch` only makes it fast.
 */
export interface GenerationSource {
  /**
   * Answers every floor that moved at or after `sinceMs` (the source's clock; 0 asks for everything).
   * Rejects when the answer would be incomplete: the caller keeps what it has and counts the read as failed.
   */
  read(sinceMs: number): Promise<GenerationSnapshot>;
  /**
   * Calls `wake` when something may have moved, and answers a function that stops it. A hint only: a source may
   * lose, repeat or reorder hints. Resolves once the watch stands; a rejection leaves polling as the base line.
   * A watch that ends by itself says so through `lost`, and is asked for again after a pause.
   */
  watch?(wake: () => void, lost?: (error: unknown) => void): Promise<() => void>;
  /** Publishes a floor, durably: once resolved, every later `read` has it. A lower number than the known one changes nothing. */
  publish?(clientId: string, generation: number): Promise<void>;
  /** Releases connections and timers. */
  close?(): Promise<void>;
}
