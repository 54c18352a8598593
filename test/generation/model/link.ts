import type { Floor, GenerationSnapshot, GenerationSource } from '../../../src/generation/source';
import type { World } from './world';

/** What becomes of one read. Times in ms, on the way there and on the way back; the verifier waits for 5 s. */
export type ReadFate =
  | { readonly kind: 'responds'; readonly thereMs: number; readonly backMs: number }
  | { readonly kind: 'fails' | 'hangs' | 'is partly broken' };

/** What becomes of one hint. */
export type HintFate = 'lost' | 'repeated' | { readonly lateMs: number };

/** What becomes of one attempt to watch. */
export type WatchFate = 'fails' | 'hangs';

/** The connection of one server to the source; requests without an entry in the queues succeed immediately. */
export class Link {
  readonly reads: ReadFate[] = [];
  readonly hints: HintFate[] = [];
  readonly watches: WatchFate[] = [];
  readonly #world: World;
  #wake: (() => void) | undefined;
  #lost: ((error: unknown) => void) | undefined;

  constructor(world: World) {
    this.#world = world;
    world.listeners.add(() => this.#hint());
  }

  /** The source, seen by one process. */
  connect(onRequest: () => void, onResponse: (floors: readonly Floor[]) => void, watches: boolean): GenerationSource {
    const read = async (sinceMs: number): Promise<GenerationSnapshot> => {
      onRequest();
      const fate = this.reads.shift() ?? { kind: 'responds', thereMs: 0, backMs: 0 };
      if (fate.kind === 'fails') throw new Error('down');
      if (fate.kind === 'hangs') return new Promise(() => undefined);
      const { thereMs, backMs } = fate.kind === 'responds' ? fate : { thereMs: 0, backMs: 0 };
      await this.#pause(thereMs);
      const { floors, nowMs } = this.#world.read(sinceMs);
      await this.#pause(backMs);
      // One floor in the store was overwritten with an invalid value.
      const intact = fate.kind === 'responds' ? floors : floors.slice(1);
      onResponse(intact);
      return { floors: fate.kind === 'responds' ? floors : [['broken', -1], ...intact], nowMs };
    };
    return watches ? { read, watch: (wake, lost) => this.#watch(wake, lost) } : { read };
  }

  /** The source ends the watch. */
  loseWatch(): void {
    this.#wake = undefined;
    this.#lost?.(new Error('cut'));
  }

  /** A hint for nothing. */
  hintAnyway(): void {
    this.#wake?.();
  }

  async #watch(wake: () => void, lost: ((error: unknown) => void) | undefined): Promise<() => void> {
    const fate = this.watches.shift();
    if (fate === 'fails') throw new Error('no watch');
    if (fate === 'hangs') return new Promise(() => undefined);
    await this.#pause(0);
    this.#wake = wake;
    this.#lost = lost;
    return () => {
      if (this.#wake === wake) this.#wake = undefined;
    };
  }

  #hint(): void {
    const wake = this.#wake;
    if (!wake) return;
    const fate = this.hints.shift() ?? { lateMs: 0 };
    if (fate === 'lost') return;
    if (fate === 'repeated') wake();
    // Also to a watch that has been stopped, or to a process that is gone.
    if (typeof fate === 'object' && fate.lateMs > 0) this.#world.time.schedule(wake, fate.lateMs);
    else wake();
  }

  #pause(ms: number): Promise<void> | undefined {
    return ms > 0 ? new Promise((resolve) => this.#world.time.schedule(resolve, ms)) : undefined;
  }
}
