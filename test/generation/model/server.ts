import type { Floor } from '../../../src/generation/source';
import type { GenerationVerifier } from '../../../src/generation/verifier';
import { reasonOf, startVerifier } from '../fixtures';
import { Knowledge } from './knowledge';
import { Link } from './link';
import { MAX_TOKEN_AGE, TOLERANCE } from './world';
import type { ModelToken, World } from './world';

export const MAX_STALENESS = 20_000;

/** What kind of resource server a machine runs. */
export interface ServerKind {
  readonly name: string;
  readonly onStale: 'reject' | 'accept';
  readonly source: 'watched' | 'polled' | 'none';
}

interface ReadBegun {
  readonly clockMs: number;
  /** What the source showed then: a complete read knows at least this. */
  readonly committed: readonly Floor[];
  readonly losses: number;
}

/**
 * One resource server with a clock of its own, next to the model of what it must know. Every token that is presented is
 * judged by both.
 */
export class ModelServer {
  readonly kind: ServerKind;
  readonly link: Link;
  readonly #world: World;
  #offsetMs = 0;
  #verifier!: GenerationVerifier;
  #knowledge = new Knowledge();
  /** Tokens that this process remembers as verified. */
  #verified = new Set<ModelToken>();
  #begun: ReadBegun | undefined;
  #complete: ReadBegun | undefined;
  #endedReads = -1;
  #completeReads = 0;

  constructor(kind: ServerKind, world: World) {
    this.kind = kind;
    this.#world = world;
    this.link = new Link(world);
    this.#start();
  }

  get clockMs(): number {
    return this.#world.time.clock() + this.#offsetMs;
  }

  stepClock(ms: number): void {
    this.#offsetMs += ms;
  }

  /** The process is killed, and another one begins with nothing. */
  async restart(): Promise<void> {
    await this.close();
    this.#start();
  }

  close(): Promise<void> {
    return this.#verifier.close();
  }

  /** Catches up with what has happened; to be called after every event. */
  observe(): void {
    const { reads } = this.#verifier.status();
    if (reads > this.#completeReads) {
      this.#completeReads = reads;
      this.#complete = this.#begun;
      // A source that was emptied meanwhile had nothing to return.
      if (this.#begun?.losses === this.#world.losses) this.#knowledge.apply(this.#begun.committed);
      // Floors are dropped by the time of the read, which can bring back what a wrong clock has dropped.
      this.#knowledge.forget(this.#begun?.clockMs ?? 0);
    }
    if (this.kind.source === 'none') this.#knowledge.forget(this.clockMs);
  }

  /**
   * Presents a token: the first time it is examined, later it is remembered. Returns `false` when its times alone refuse
   * it, before anybody looks at its generation.
   */
  present(token: ModelToken): boolean {
    const remembered = this.#verified.has(token);
    const got = this.#judge(token, remembered);
    if (got === 'accepted') this.#verified.add(token);
    return got !== undefined;
  }

  /** Judges a token as if it were remembered: the server learns nothing. */
  probe(token: ModelToken): boolean {
    return this.#judge(token, true) !== undefined;
  }

  /** Whether this server is fresh, and refuses what is below every floor that it is bound by. */
  requireRecovered(): void {
    this.observe();
    if (this.kind.source !== 'none' && !this.#isFresh()) throw new Error(`${this.kind.name}: has not recovered`);
    for (const [clientId, floor] of this.#knowledge.entries()) {
      const got = this.#check(clientId, floor - 1);
      if (got !== 'superseded') throw new Error(`${this.kind.name}: ${clientId} below the floor ${floor} is ${got}`);
    }
  }

  #judge(token: ModelToken, remembered: boolean): string | undefined {
    const { clockMs } = this;
    if (clockMs >= token.expMs + TOLERANCE || token.iatMs > clockMs + TOLERANCE) return undefined;
    this.observe();
    const { clientId, generation } = token;
    const expected = this.#expected(token, remembered);
    const got = remembered ? this.#check(clientId, generation) : this.#admit(clientId, generation);
    if (expected.includes(got)) return got;
    const state = JSON.stringify({ ...this.#verifier.status(), clockMs });
    throw new Error(
      `${this.kind.name}: ${JSON.stringify(token)} is ${got}, expected ${expected.join(' or ')}; ${state}`,
    );
  }

  /** Every outcome that is right. */
  #expected({ clientId, generation }: ModelToken, remembered: boolean): string[] {
    // A token that is remembered was compared with the clock the first time.
    if (!remembered && generation > this.clockMs + TOLERANCE) return ['generation_invalid'];
    if (this.#knowledge.binds(clientId, generation)) return ['superseded'];
    const otherwise = this.kind.onStale === 'accept' || this.#isFresh() ? 'accepted' : 'generations_unavailable';
    return this.#knowledge.allows(clientId, generation) ? [otherwise, 'superseded'] : [otherwise];
  }

  #isFresh(): boolean {
    if (this.kind.source === 'none') return true;
    const ageMs = this.#complete ? this.clockMs - this.#complete.clockMs : -1;
    return ageMs >= 0 && ageMs <= MAX_STALENESS;
  }

  #admit(clientId: string, generation: number): string {
    const got = reasonOf(() => this.#verifier.verify(clientId, { generation })) ?? 'accepted';
    // The token has proved its generation, even while a later one may exist.
    if (got === 'accepted' || got === 'generations_unavailable') this.#knowledge.apply([[clientId, generation]]);
    return got;
  }

  #check(clientId: string, generation: number): string {
    return reasonOf(() => this.#verifier.recheck(clientId, generation)) ?? 'accepted';
  }

  #start(): void {
    const knowledge = (this.#knowledge = new Knowledge());
    this.#verified = new Set();
    this.#begun = this.#complete = undefined;
    this.#endedReads = -1;
    this.#completeReads = 0;
    const { source, onStale } = this.kind;
    const onAsk = (): void => this.#onAsk();
    // Of this process alone: a response can arrive after it has ended.
    const link = this.link.connect(onAsk, (floors) => knowledge.apply(floors), source === 'watched');
    const options = { clock: () => this.clockMs, maxStalenessMs: MAX_STALENESS, onStale, skewMs: TOLERANCE };
    const bounds = { maxTokenAgeMs: MAX_TOKEN_AGE, pollMs: 7_000, random: () => 0.5 };
    const followed = source === 'none' ? {} : { source: link };
    this.#verifier = startVerifier({ ...options, ...bounds, ...followed }, this.#world.time).verifier;
  }

  /** A read that meets a clock that has stepped back asks twice; it began with the first. */
  #onAsk(): void {
    this.observe();
    const { reads, failures } = this.#verifier.status();
    if (reads + failures === this.#endedReads) return;
    this.#endedReads = reads + failures;
    this.#begun = { clockMs: this.clockMs, committed: this.#world.committed(), losses: this.#world.losses };
  }
}
