import type { Batch, Change, Mark, Unit } from '../../src/gate/generation/log';

interface Entry {
  readonly change: Change;
  /** No other entry of any engine has it. */
  readonly id: number;
}

/** What an engine keeps. */
export interface State {
  readonly entries: readonly Entry[];
  readonly mark: Mark | undefined;
}

const EMPTY: State = { entries: [], mark: undefined };
/** States that can be gone back to. */
const KEPT_STATES = 300;

let lastId = 0;

/** An engine with an ordered log. It applies a unit atomically; a copy of it is a state that it once had. */
export class Engine {
  state: State;
  /** Every state that it had lately, with its time. */
  readonly #states: { readonly atMs: number; readonly state: State }[] = [];
  readonly #now: () => number;
  readonly #listeners = new Set<() => void>();
  /** Runs before a unit is applied: it can change the log between two units. */
  beforeUnit: (() => void) | undefined;

  constructor(now: () => number, state: State = EMPTY) {
    this.#now = now;
    this.state = state;
    this.#keep();
  }

  apply(changes: readonly Change[], unit: Unit | undefined): Mark | undefined {
    const before = this.beforeUnit;
    if (unit) this.beforeUnit = undefined;
    if (unit) before?.();
    const { entries, mark } = this.state;
    if (unit && (unit.expected?.epoch !== mark?.epoch || unit.expected?.unit !== mark?.unit)) return mark;
    const added = changes.map((change) => ({ change, id: ++lastId }));
    this.set({ entries: added.length > 0 ? [...entries, ...added] : entries, mark: unit ? unit.mark : mark });
    for (const listener of [...this.#listeners]) listener();
    return this.state.mark;
  }

  set(state: State): void {
    this.state = state;
    this.#keep();
  }

  wipe(): void {
    this.set(EMPTY);
  }

  /** The state that it had so long ago, or its first one. */
  stateBefore(ms: number): State {
    const atMs = this.#now() - ms;
    const found = this.#states.findLast((kept) => kept.atMs <= atMs) ?? this.#states[0];
    return found?.state ?? EMPTY;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #keep(): void {
    this.#states.push({ atMs: this.#now(), state: this.state });
    if (this.#states.length > KEPT_STATES) this.#states.shift();
  }
}

/** A position in the log of an engine, as a reader keeps it. */
export class Position {
  #lastId: number | undefined;
  #epoch: string | undefined;
  #unit = 0;

  copy(): Position {
    const copy = new Position();
    [copy.#lastId, copy.#epoch, copy.#unit] = [this.#lastId, this.#epoch, this.#unit];
    return copy;
  }

  /** Reads on; from the oldest change where the mark is another epoch's or older, or the entry read last is gone. */
  read({ entries, mark }: State, limit: number): Batch {
    if (mark && (mark.epoch !== this.#epoch || mark.unit < this.#unit)) this.#lastId = undefined;
    if (mark) [this.#epoch, this.#unit] = [mark.epoch, mark.unit];
    const at = this.#lastId === undefined ? -1 : entries.findLastIndex(({ id }) => id === this.#lastId);
    const found = entries.slice(at + 1, at + 1 + limit);
    this.#lastId = found.at(-1)?.id ?? (at < 0 ? undefined : this.#lastId);
    return { changes: found.map(({ change }) => change), mark, end: at + 1 + found.length === entries.length };
  }
}
