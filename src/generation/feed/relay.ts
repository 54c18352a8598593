import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock, systemSchedule } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { readOptions } from '../../core/options';
import type { GenerationSnapshot, GenerationSource } from '../source';
import { SourceError } from '../source-error';
import { Freshness, SourceSync } from '../source-sync';
import type { FeedView } from './feed';
import { FloorLog } from './floor-log';
import { feedHandler } from './handler';

/** Options of `generationsFeed()`. */
export interface GenerationsFeedOptions extends Pick<Dependencies, 'logger' | 'clock' | 'schedule' | 'random'> {
  /** The source to follow: any, also `httpGenerations()` of another relay. The caller closes it. */
  readonly source: GenerationSource;
  /** What this relay is called in `Via`, followed by a random part: a relay that finds itself there refuses. Default `relay`. */
  readonly name?: string | undefined;
  /** Longest lifetime of a token in the gates that read here, in seconds; older floors are dropped. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
  /** Age of the floors, in ms, past which the feed responds with 503. Default 60000. */
  readonly maxStalenessMs?: number | undefined;
  /** Longest pause between reads of the source, in ms. Default 5000. */
  readonly pollMs?: number | undefined;
  /** Longest time for one read, or for one page of a large one, in ms. Default 5000. */
  readonly readTimeoutMs?: number | undefined;
}

/** State of a relay, for operators and health checks. */
export interface GenerationsFeedStatus {
  /** Its name in `Via`. */
  readonly name: string;
  /** The relays and proxies that it follows, the nearest last. */
  readonly via: readonly string[];
  /** `starting`: no complete read yet; `stale`: the last one is too old. Both respond with 503. */
  readonly source: 'starting' | 'fresh' | 'stale';
  /** Age of the floors in ms, along the whole chain; absent before the first complete read. */
  readonly ageMs?: number;
  readonly floors: number;
  /** Streams that are open. */
  readonly streams: number;
  /** Why the last read failed; for operators only. */
  readonly lastError?: string;
  readonly reads: number;
  readonly failures: number;
}

/** A relay: a middleware for Express 4 and 5, and a request handler for Node's own server. */
export interface GenerationsFeed {
  (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void): void;
  /** Resolves after the first complete read; never rejects. */
  ready(): Promise<void>;
  status(): GenerationsFeedStatus;
  /** Ends the streams and stops reading; from then on it responds with 503. */
  close(): Promise<void>;
}

const OPTIONS = [
  'source',
  'name',
  'maxTokenAgeSeconds',
  'maxStalenessMs',
  'pollMs',
  'readTimeoutMs',
  'logger',
  'clock',
  'schedule',
  'random',
] as const;

/** Longer than any gate needs, so that clocks of a chain may differ. */
const EXTRA_MS = 3_600_000;
const OVERLAP_MS = 60_000;
const NAME = /^[\w.:[\]-]{1,128}$/;

/**
 * Makes a relay: it follows a source and serves its floors over http, for `httpGenerations()` of any number of processes
 * and of further relays. `GET /?since=<ms>` and `GET /stream` below the path where it is mounted. It authenticates
 * nobody: mount a guard before it.
 *
 * Without a recent complete read it responds with 503. The age of its floors is in `Age`, so that staleness adds up along
 * a chain; a chain that leads back to itself is refused.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import express from 'express';
 * import { generationsFeed, httpGenerations } from 'tillgate/generations';
 *
 * const source = httpGenerations({ url: 'https://login.example.com/generations' });
 * const feed = generationsFeed({ source });
 * express().use('/generations', feed).listen(4100);
 * ```
 */
export function generationsFeed(options: GenerationsFeedOptions): GenerationsFeed {
  const given = readOptions('generationsFeed', options, OPTIONS);
  const { source } = options;
  if (typeof source?.read !== 'function') given.refuse('source', 'a generation source, such as httpGenerations()');
  const prefix = given.string('name') ?? 'relay';
  if (!NAME.test(prefix) || prefix.length > 64) given.refuse('name', 'at most 64 letters, digits and . _ -');
  const name = `${prefix}-${randomBytes(6).toString('hex')}`;
  const clock = given.callable('clock', systemClock);
  const schedule = given.callable('schedule', systemSchedule);
  const maxStalenessMs = given.number('maxStalenessMs', 60_000, { unit: 'ms', min: 1 });
  const pollMs = given.number('pollMs', 5_000, { unit: 'ms', min: 10 });
  const maxTokenAgeMs = 1000 * given.number('maxTokenAgeSeconds', 86_400, { unit: 'seconds', min: 1 });
  const logger = options.logger ?? consoleLogger;

  const floors = new FloorLog(clock, maxTokenAgeMs + EXTRA_MS);
  const freshness = new Freshness(maxStalenessMs, clock);
  const listeners = new Set<() => void>();
  const chain = chainOf(name);
  let completeFromMs = 0;
  let closed = false;
  let isNotifying = false;
  let isLoop = false;

  /** Once for the many moves of one page. */
  function notify(): void {
    if (isNotifying) return;
    isNotifying = true;
    queueMicrotask(() => {
      isNotifying = false;
      for (const listener of [...listeners]) listener();
    });
  }
  floors.onMove = notify;

  /** The source, with what its responses say about themselves. */
  const followed: GenerationSource = {
    sentinel: source.sentinel,
    ...(source.watch && { watch: (wake, lost) => source.watch!(wake, lost) }),
    async read(sinceMs, takePage) {
      if (sinceMs === 0) floors.startOver(clock());
      const snapshot = await readUnlessLoop(sinceMs, takePage);
      requireNoLoop(ownMember(snapshot, 'via') ?? []);
      const fromMs = ownMember(snapshot, 'completeFromMs') ?? 0;
      completeFromMs = sinceMs === 0 ? fromMs : Math.max(completeFromMs, fromMs);
      return snapshot;
    },
  };

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
    const loop = chain.follow(names);
    if (loop && !isLoop) logger.error({ feed: name, chain: loop }, 'generations come back to this relay: refused');
    isLoop = loop !== undefined;
    if (loop) throw new SourceError(`a loop of relays: ${loop}`);
  }

  const sync = new SourceSync({
    source: followed,
    floors: {
      // Each gate decides for itself whether the floors go back far enough.
      lifetimeMs: 0,
      raise: (clientId, generation) => floors.raise(clientId, generation),
      trimWhenDue: (nowMs) => floors.trimWhenDue(nowMs),
    },
    freshness,
    fields: { feed: name },
    maxStalenessMs,
    pollMs,
    readTimeoutMs: given.number('readTimeoutMs', 5_000, { unit: 'ms', min: 1, max: 600_000 }),
    overlapMs: OVERLAP_MS,
    clock,
    schedule,
    random: given.callable('random', Math.random),
    logger,
    onRead: notify,
  });

  function view(): FeedView | undefined {
    if (closed || freshness.state !== 'fresh') {
      if (!closed && freshness.state === 'stale') sync.refresh();
      return undefined;
    }
    const nowMs = floors.nowMs();
    return {
      revision: `${name}.${floors.revision}`,
      nowMs,
      nextMs: nowMs + 1,
      completeFromMs: Math.max(completeFromMs, floors.horizonMs),
      ageMs: freshness.ageMs,
      movedSince: (ms) => floors.movedSince(ms),
    };
  }

  const handler = feedHandler(
    {
      get closed() {
        return closed;
      },
      get via() {
        return [...chain.names, name];
      },
      retryAfterSeconds: Math.min(30, Math.max(1, Math.ceil(pollMs / 1000))),
      view,
      subscribe(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
    schedule,
  );
  void sync.start();
  return Object.assign(handler, {
    ready: () => sync.ready,
    status: () => ({
      name,
      via: chain.names,
      source: freshness.state,
      ...(freshness.ageMs !== undefined && { ageMs: freshness.ageMs }),
      floors: floors.size,
      streams: listeners.size,
      ...(sync.lastError !== undefined && { lastError: sync.lastError }),
      reads: sync.reads,
      failures: sync.failures,
    }),
    close() {
      closed = true;
      sync.close();
      notify();
      return Promise.resolve();
    },
  });
}

/** The relays above this one. */
function chainOf(name: string): { names: readonly string[]; follow(names: readonly string[]): string | undefined } {
  return {
    names: [],
    /** Returns the loop, if the floors came through this relay. */
    follow(names) {
      const above = names.filter((one) => typeof one === 'string' && NAME.test(one));
      const own = above.lastIndexOf(name);
      // Only those after itself, or two relays that follow each other would make the list longer each time.
      this.names = above.slice(own + 1);
      return own < 0 ? undefined : [...above.slice(own), name].join(' -> ');
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
