import type { Clock, Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { nameOf, requireOk, withPath } from './client';
import type { HttpClient } from './client';
import { sseParser } from './sse';
import { SourceError } from '../source-error';

/** How the stream of a token server is followed. */
export interface StreamOptions {
  readonly client: HttpClient;
  readonly address: URL;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

type Watch = (wake: () => void, lost?: (error: unknown) => void) => Promise<() => void>;

/** The server sends a heartbeat every 15 s: after three of them the connection is dead, whatever TCP believes. */
const LONGEST_SILENCE_MS = 45_000;
const LONGEST_RETRY_MS = 30_000;

/**
 * Makes the `watch` of a token server: `GET /generations/stream`, one event per change (WHATWG HTML section 9.2).
 * The watcher connects again after `lost`; the last event id is kept here for it.
 */
export function streamWatch({ client, address, clock, schedule, logger }: StreamOptions): Watch {
  let lastEventId = '';
  let retryMs = 0;

  function connect(exchange: AbortController): Promise<Response> {
    return client.bounded(exchange, async () => {
      const resume = lastEventId === '' ? undefined : { 'last-event-id': lastEventId };
      const headers = { accept: 'text/event-stream', ...resume };
      const response = await client.get(exchange, withPath(address, 'stream'), headers);
      requireOk(response, /^text\/event-stream\s*(;|$)/i, 'text/event-stream');
      return response;
    });
  }

  /** Resolves with the reason when the stream has ended; never rejects. */
  async function follow(exchange: AbortController, response: Response, wake: () => void): Promise<SourceError> {
    const parser = sseParser({
      onEvent: wake,
      // What cannot stand in a header cannot be sent back.
      onLastEventId: (id) => (lastEventId = /^[\x21-\x7e]{0,256}$/.test(id) ? id : ''),
      onRetry: (delayMs) => (retryMs = Math.min(delayMs, LONGEST_RETRY_MS)),
    });
    let watchdog = startWatchdog(exchange);
    try {
      for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
        watchdog.cancel();
        watchdog = startWatchdog(exchange);
        parser.push(chunk);
      }
      return client.failure(exchange, new SourceError('the stream has ended'));
    } catch (error) {
      return client.failure(exchange, error);
    } finally {
      watchdog.cancel();
    }
  }

  function startWatchdog(exchange: AbortController): Timer {
    const silent = new SourceError(`the stream was silent for ${LONGEST_SILENCE_MS} ms`);
    return schedule(() => exchange.abort(silent), LONGEST_SILENCE_MS);
  }

  return async function watch(wake, lost) {
    const exchange = client.acquire();
    let stopped = false;
    let pause: Timer | undefined;
    const response = await connect(exchange).catch((error: unknown) => {
      client.release(exchange);
      throw error;
    });
    const openedMs = clock();
    void follow(exchange, response, wake).then((reason) => {
      client.release(exchange);
      if (stopped) return;
      logger.info({ source: nameOf(address), openMs: clock() - openedMs }, 'the stream of generations has ended');
      // The pause that the server has asked for comes before anybody connects again.
      pause = schedule(() => lost?.(reason), retryMs);
    });
    return () => {
      stopped = true;
      pause?.cancel();
      client.release(exchange);
    };
  };
}
