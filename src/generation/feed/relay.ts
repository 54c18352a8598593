import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock, systemSchedule } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { readOptions } from '../../core/options';
import { KEPT_LONGER_MS } from '../floors';
import type { GenerationSource } from '../source';
import { Freshness, SourceSync } from '../source-sync';
import type { FeedView } from './feed';
import { FloorLog } from './floor-log';
import { follow, RELAY_NAME } from './followed';
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

const OVERLAP_MS = 60_000;

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
  if (!RELAY_NAME.test(prefix) || prefix.length > 64) given.refuse('name', 'at most 64 letters, digits and . _ -');
  const name = `${prefix}-${randomBytes(6).toString('hex')}`;
  const clock = given.callable('clock', systemClock);
  const schedule = given.callable('schedule', systemSchedule);
  const maxStalenessMs = given.number('maxStalenessMs', 60_000, { unit: 'ms', min: 1 });
  const pollMs = given.number('pollMs', 5_000, { unit: 'ms', min: 10 });
  const maxTokenAgeMs = 1000 * given.number('maxTokenAgeSeconds', 86_400, { unit: 'seconds', min: 1 });
  const logger = options.logger ?? consoleLogger;

  const floors = new FloorLog(clock, maxTokenAgeMs + KEPT_LONGER_MS);
  const freshness = new Freshness(maxStalenessMs, clock);
  const listeners = new Set<() => void>();
  let closed = false;
  let isNotifying = false;
  let interruptions = 0;
  let staleFromMs = Infinity;

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

  function onRead(): void {
    if (clock() > staleFromMs) interruptions++;
    staleFromMs = clock() - (freshness.ageMs ?? 0) + maxStalenessMs;
    notify();
  }

  const followed = follow({ source, name, onWholeRead: () => floors.startOver(clock()), logger });
  const sync = new SourceSync({
    source: followed.source,
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
    onRead,
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
      completeFromMs: Math.max(followed.completeFromMs, floors.horizonMs),
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
        return [...followed.via, name];
      },
      get interruptions() {
        return interruptions;
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
      via: followed.via,
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
