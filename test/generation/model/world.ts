import type { Floor } from '../../../src/generation/source';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { START } from '../fixtures';

export const MINUTE = 60_000;
/** Longest `exp - iat`. */
export const MAX_TOKEN_AGE = 10 * MINUTE;
/** Of every check of a time in a token. */
export const TOLERANCE = 10_000;
/** Clocks of the machines that issue tokens and change clients: 30 s apart. */
const WRITER_OFFSETS = [-15_000, 15_000, 0];

/** A token, as far as generations are concerned. */
export interface ModelToken {
  readonly clientId: string;
  readonly generation: number;
  readonly iatMs: number;
  readonly expMs: number;
}

interface Row {
  readonly generation: number;
  /** The source's clock when the change began. */
  readonly changedMs: number;
}

/**
 * The authorization server, on several machines, and the source that it publishes to. A change has a time from its
 * beginning and becomes visible when it is committed, in any order.
 */
export class World {
  readonly time: FakeTime = fakeTime(START);
  /** Told of every commit. */
  readonly listeners = new Set<() => void>();
  readonly #registry = new Map<string, number>();
  readonly #visible = new Map<string, Row>();
  #sourceOffsetMs = 0;
  /** How often the source has lost all that it had. */
  losses = 0;

  /** Changes a client by the rule `max(previous + 1, now)`; the source shows it after `lateMs`. */
  change(clientId: string, writer: number, lateMs: number): void {
    const generation = Math.max(this.generationOf(clientId) + 1, this.#writerNow(writer));
    this.#registry.set(clientId, generation);
    const changedMs = this.#sourceNow();
    if (lateMs === 0) this.#commit(clientId, { generation, changedMs });
    else this.time.schedule(() => this.#commit(clientId, { generation, changedMs }), lateMs);
  }

  /** Issues a token of the client as it is now. */
  issue(clientId: string, writer: number, lifetimeMs: number): ModelToken {
    // NumericDate is in seconds (RFC 7519 section 2).
    const iatMs = Math.floor(this.#writerNow(writer) / 1000) * 1000;
    return { clientId, generation: this.generationOf(clientId), iatMs, expMs: iatMs + lifetimeMs };
  }

  /** A client begins with the time of its registration, which is not published. */
  generationOf(clientId: string): number {
    return this.#registry.get(clientId) ?? START - MINUTE;
  }

  stepSource(ms: number): void {
    this.#sourceOffsetMs += ms;
  }

  /** The source loses all that it has. */
  empty(): void {
    this.losses++;
    this.#visible.clear();
  }

  /** What the source shows now. */
  read(sinceMs: number): { readonly floors: readonly Floor[]; readonly nowMs: number } {
    const moved = [...this.#visible].filter(([, { changedMs }]) => changedMs >= sinceMs);
    return { floors: moved.map(toFloor), nowMs: this.#sourceNow() };
  }

  /** Every floor that the source shows now. */
  committed(): Floor[] {
    return [...this.#visible].map(toFloor);
  }

  #commit(clientId: string, row: Row): void {
    const shown = this.#visible.get(clientId);
    // An earlier number that commits later is a change too: its writer does not know the later one.
    const generation = Math.max(row.generation, shown?.generation ?? 0);
    this.#visible.set(clientId, { generation, changedMs: Math.max(row.changedMs, shown?.changedMs ?? 0) });
    for (const listener of this.listeners) listener();
  }

  #writerNow(writer: number): number {
    return this.time.clock() + (WRITER_OFFSETS[writer] ?? 0);
  }

  #sourceNow(): number {
    return this.time.clock() + this.#sourceOffsetMs;
  }
}

function toFloor([clientId, { generation }]: [string, Row]): Floor {
  return [clientId, generation];
}
