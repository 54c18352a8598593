import type { Logger } from '../../core/logger';
import type { GenerationSnapshot, GenerationSource } from '../source';
import { SourceError } from '../source-error';

/** Names that may stand in `Via` (RFC 9110 section 7.6.3). */
export const RELAY_NAME = /^[\w.:[\]-]{1,128}$/;

/** A source as a relay follows it, and what its responses say about themselves. */
export interface Followed {
  readonly source: GenerationSource;
  /** The relays above this one, the nearest last. */
  readonly via: readonly string[];
  /** Lower floors that are times may be missing. */
  readonly completeFromMs: number;
}

/** How a source is followed. */
export interface FollowOptions {
  readonly source: GenerationSource;
  /** The relay's own name. */
  readonly name: string;
  /** Called before everything is read. */
  readonly onWholeRead: () => void;
  readonly logger: Logger;
}

/** Makes every read of a source fail while its floors come through this relay itself: then no relay would ever be stale. */
export function follow({ source, name, onWholeRead, logger }: FollowOptions): Followed {
  let via: readonly string[] = [];
  let completeFromMs = 0;
  let isLoop = false;

  async function read(...[sinceMs, takePage]: Parameters<GenerationSource['read']>): Promise<GenerationSnapshot> {
    if (sinceMs === 0) onWholeRead();
    const snapshot = await readUnlessLoop(sinceMs, takePage);
    requireNoLoop(ownMember(snapshot, 'via') ?? []);
    const fromMs = ownMember(snapshot, 'completeFromMs') ?? 0;
    completeFromMs = sinceMs === 0 ? fromMs : Math.max(completeFromMs, fromMs);
    return snapshot;
  }

  async function readUnlessLoop(...args: Parameters<GenerationSource['read']>): Promise<GenerationSnapshot> {
    try {
      return await source.read(...args);
    } catch (error) {
      // Two relays that wait for each other show their names in their refusals.
      if (error instanceof SourceError && error.via) requireNoLoop(error.via);
      throw error;
    }
  }

  function requireNoLoop(names: readonly string[]): void {
    const above = names.filter((one) => typeof one === 'string' && RELAY_NAME.test(one));
    const own = above.lastIndexOf(name);
    // Only those after itself, or two relays that follow each other would make the list longer each time.
    via = above.slice(own + 1);
    const wasLoop = isLoop;
    isLoop = own >= 0;
    if (!isLoop) return;
    const chain = [...above.slice(own), name].join(' -> ');
    if (!wasLoop) logger.error({ feed: name, chain }, 'generations come back to the relay that sent them: refused');
    throw new SourceError(`a loop of relays: ${chain}`);
  }

  return {
    source: {
      read,
      ...(source.watch && { watch: (wake, lost) => source.watch!(wake, lost) }),
      sentinel: source.sentinel,
    },
    get via() {
      return via;
    },
    get completeFromMs() {
      return completeFromMs;
    },
  };
}

/** One that is inherited from a polluted prototype says nothing about the floors. */
function ownMember<Key extends keyof GenerationSnapshot>(
  snapshot: GenerationSnapshot,
  key: Key,
): GenerationSnapshot[Key] | undefined {
  return Object.hasOwn(snapshot, key) ? snapshot[key] : undefined;
}
