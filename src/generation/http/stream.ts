import type { Clock, Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { ownValue } from '../../core/objects';
import { isGeneration } from '../generation';
import { loggableUrl, requireOk, withPath } from './client';
import type { HttpClient } from './client';
import { SourceError } from '../source-error';

/** How the stream of a token server is followed. */
export interface StreamOptions {
  readonly client: HttpClient;
  readonly url: URL;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
  /** Receives each floor of an event before `wake` is called. */
  readonly onFloor: (clientId: string, generation: number) => void;
}

type Watch = (wake: () => void, lost?: (error: unknown) => void) => Promise<() => void>;

/** Three heartbeats of the server, which sends one every 15 s: then the connection is dead, even if TCP is not. */
const MAX_SILENCE_MS = 45_000;
const MAX_RETRY_MS = 30_000;

/**
 * Makes the `watch` of a token server: `GET /generations/stream`, one event per change (WHATWG HTML section 9.2).
 * After `lost` the caller watches again; the last event id is kept for that.
 */
export function streamWatch({ client, url, clock, schedule, logger, onFloor }: StreamOptions): Watch {
  let lastEventId = '';
  let retryMs = 0;

  function connect(exchange: AbortController): Promise<Response> {
    return client.bounded(exchange, async () => {
      const resume = lastEventId === '' ? undefined : { 'last-event-id': lastEventId };
      const headers = { accept: 'text/event-stream', ...resume };
      const response = await client.get(exchange, withPath(url, 'stream'), headers);
      requireOk(response, /^text\/event-stream\s*(;|$)/i, 'text/event-stream');
      return response;
    });
  }

  /** Events are hints only: what is not a floor is left to the next read. */
  function takeFloor(data: string): void {
    try {
      const entry: unknown = JSON.parse(data);
      const [clientId, generation] = [ownValue(entry, 'client_id'), ownValue(entry, 'generation')];
      if (typeof clientId === 'string' && clientId !== '' && isGeneration(generation)) onFloor(clientId, generation);
    } catch {
      // Not JSON.
    }
  }

  /** Resolves with the reason when the stream has ended; never rejects. */
  async function follow(exchange: AbortController, response: Response, wake: () => void): Promise<SourceError> {
    const parser = sseParser({
      onEvent({ event, data }) {
        if (event === 'generation') takeFloor(data);
        wake();
      },
      // Only what is valid in a header can be sent back.
      onLastEventId: (id) => (lastEventId = /^[\x21-\x7e]{0,256}$/.test(id) ? id : ''),
      onRetry: (delayMs) => (retryMs = Math.min(delayMs, MAX_RETRY_MS)),
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
    const silent = new SourceError(`the stream was silent for ${MAX_SILENCE_MS} ms`);
    return schedule(() => exchange.abort(silent), MAX_SILENCE_MS);
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
      logger.info({ source: loggableUrl(url), openMs: clock() - openedMs }, 'the stream of generations has ended');
      // The server's `retry` delays the next connection.
      pause = schedule(() => lost?.(reason), retryMs);
    });
    return () => {
      stopped = true;
      pause?.cancel();
      client.release(exchange);
    };
  };
}

/** One event of a stream (WHATWG HTML section 9.2.6). */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
}

/** What a parser reports. */
export interface SseHandlers {
  readonly onEvent: (event: ServerSentEvent) => void;
  /** The id to send as `Last-Event-ID` when connecting again; `''` when the server has reset it. */
  readonly onLastEventId: (id: string) => void;
  /** Pause in ms that the server asks for before a reconnection. */
  readonly onRetry: (delayMs: number) => void;
}

/** Bounds the memory of a stream that never ends a line or an event. */
const MAX_EVENT_LENGTH = 65_536;

/**
 * Makes a parser of one `text/event-stream` (WHATWG HTML section 9.2.6).
 *
 * The current `eventsource-parser` is ESM only and needs a newer Node than we support.
 *
 * @throws RangeError from `push` when a line or an event grows beyond 64 Ki characters.
 */
export function sseParser({ onEvent, onLastEventId, onRetry }: SseHandlers): { push(bytes: Uint8Array): void } {
  // Joins code points across chunks, and removes a byte order mark.
  const decoder = new TextDecoder();
  let rest = '';
  let afterCarriageReturn = false;
  let type = '';
  let data: string[] = [];
  let dataLength = 0;
  let id: string | undefined;

  function push(bytes: Uint8Array): void {
    let text = decoder.decode(bytes, { stream: true });
    if (text === '') return;
    // A chunk boundary may split CR LF: the CR has ended the line already.
    if (afterCarriageReturn && text.startsWith('\n')) text = text.slice(1);
    afterCarriageReturn = text.endsWith('\r');
    const lines = (rest + text).split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    lines.forEach(takeLine);
    if (rest.length + dataLength > MAX_EVENT_LENGTH) throw new RangeError('an event is too long');
  }

  function takeLine(line: string): void {
    if (line === '') return dispatch();
    // A comment is a field without a name.
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    takeField(field, value);
  }

  function takeField(field: string, value: string): void {
    if (field === 'event') type = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) onRetry(Number(value));
    else if (field === 'data') {
      data.push(value);
      dataLength += value.length + 1;
      if (dataLength > MAX_EVENT_LENGTH) throw new RangeError('an event is too long');
    }
  }

  function dispatch(): void {
    // A stream without an id keeps the id of the previous connection.
    if (id !== undefined) onLastEventId(id);
    const event = { event: type || 'message', data: data.join('\n') };
    const isEmpty = data.length === 0;
    type = '';
    data = [];
    dataLength = 0;
    if (!isEmpty) onEvent(event);
  }

  return { push };
}
