import { backOffMs, systemSchedule } from '../../core/clock';
import type { Schedule, Timer } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { ownValue } from '../../core/objects';
import { readOptions } from '../../core/options';
import { readBody } from '../../core/read-body';
import { loggableUrl } from '../../core/urls';
import type { Fetch } from '../../token/keys/fetch-json';
import type { GenerationSource, LogReader } from '../log';
import { SourceError, describeFailure, noResponse } from '../source-error';
import type { SourceDependencies } from '../source-url';
import { MAX_PAGE_BYTES, parsePage } from './page';
import type { Page } from './page';
import { httpTarget } from './target';
import type { HttpTarget } from './target';

/** Options of `httpGenerations()`. */
export interface HttpGenerationsOptions extends Pick<Dependencies, 'fetch' | 'schedule' | 'logger'> {
  /**
   * URL of the token server's `/generations`; a URL without a path is completed. Credentials in it
   * (`https://id:secret@host`) are sent as HTTP Basic.
   */
  readonly url: string;
  /** Sent with every request, for example `{ authorization: 'Bearer ...' }`. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Accepts an `http:` URL on another host than loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** Longest time for one response, in ms. Default 5000. */
  readonly timeoutMs?: number | undefined;
}

const OPTIONS = ['url', 'headers', 'allowHttp', 'timeoutMs', 'fetch', 'schedule', 'logger'] as const;

/**
 * The log of a token server over HTTP, read only: `GET /generations?after=`, and its event stream as the hint. An open
 * stream keeps the process alive until `close()`.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { httpGenerations } from 'tillgate/generations';
 *
 * const generations = httpGenerations({ url: 'https://login.example.com/generations' });
 * ```
 */
export function httpGenerations(options: HttpGenerationsOptions): GenerationSource {
  const given = readOptions('httpGenerations', options, OPTIONS);
  const connection: Connection = {
    target: httpTarget(given.string('url') ?? '', ownValue(options, 'headers'), given.boolean('allowHttp', false)),
    // Looked up at each call, so that an instrumented global is used.
    fetch: given.callable<Fetch>('fetch', (url, init) => fetch(url, init)),
    schedule: given.callable('schedule', systemSchedule),
    timeoutMs: given.number('timeoutMs', 5_000, { unit: 'ms', min: 1, max: 600_000 }),
    logger: options.logger ?? consoleLogger,
  };
  const readers = new Set<LogReader>();
  return {
    mark: true,
    reader() {
      const reader = httpReader(connection);
      readers.add(reader);
      return reader;
    },
    close() {
      for (const reader of readers) reader.close();
      return Promise.resolve();
    },
  };
}

/** Makes the source for an `http://` or `https://` URL. */
export function sourceFromUrl(url: string, dependencies: SourceDependencies): GenerationSource {
  const { headers, allowHttp, fetch, schedule, logger } = dependencies;
  return httpGenerations({ url, headers, allowHttp, fetch, schedule, logger });
}

/** How requests reach a token server. */
interface Connection {
  readonly target: HttpTarget;
  readonly fetch: Fetch;
  readonly schedule: Schedule;
  readonly timeoutMs: number;
  readonly logger: Logger;
}

/** The server writes a mark every second: a stream that is silent for that long is dead, even if TCP is not. */
const MAX_SILENCE_MS = 15_000;
/** Pauses before the stream is opened again. A proxy may cut every stream soon: only one that stays open resets them. */
const PAUSES = { firstMs: 250, longestMs: 30_000 };
const HINT = 'event: change';

function httpReader({ target, fetch, schedule, timeoutMs, logger }: Connection): LogReader {
  const url = loggableUrl(target.url.href);
  const open = new Set<AbortController>();
  let position: string | undefined;
  /** Whether the last page reached the end, and no hint has come since it was asked for. */
  let isAtEnd = false;
  let isFollowing = false;
  let failures = 0;
  let pause: Timer | undefined;
  let closed = false;
  let wake = (): void => undefined;

  function hint(): void {
    isAtEnd = false;
    wake();
  }

  /** Resolves with the hint, after `waitMs`, or when the reader is closed. */
  function hinted(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = schedule(resolve, waitMs);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /**
   * Sends one request and hands its response to `read`, within the time limit. `extend` starts another limit. What is
   * left of the response is dropped.
   */
  async function exchange<Value>(
    path: string,
    headers: Readonly<Record<string, string>>,
    read: (response: Response, extend: (limitMs: number) => void) => Promise<Value>,
  ): Promise<Value> {
    const abort = new AbortController();
    let timer: Timer | undefined;
    function limit(limitMs: number): void {
      timer?.cancel();
      timer = schedule(() => abort.abort(noResponse(limitMs)), limitMs);
    }
    open.add(abort);
    limit(timeoutMs);
    try {
      // Redirects are not followed: credentials go to the configured URL only.
      const init: RequestInit = {
        redirect: 'manual',
        signal: abort.signal,
        headers: { ...target.headers, 'cache-control': 'no-cache', ...headers },
      };
      return await read(await send(path, init, abort.signal), limit);
    } catch (error) {
      const reason: unknown = abort.signal.aborted ? abort.signal.reason : error;
      throw new SourceError(`GET ${url}: ${describeFailure(reason)}`, { cause: error });
    } finally {
      timer?.cancel();
      open.delete(abort);
      abort.abort(new SourceError('closed'));
    }
  }

  async function send(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    try {
      return await fetch(path, init);
    } catch (error) {
      if (!isConnectionReset(error) || signal.aborted) throw error;
      // The server may close an idle connection just as it is used again (RFC 9112 section 9.3.1).
      return fetch(path, init);
    }
  }

  function readPage(): Promise<Page> {
    const after = position === undefined ? undefined : { after: position };
    return exchange(urlOf(target.url, '', after), { accept: 'application/json' }, async (response) => {
      requireOk(response, 'application/json');
      const body = response.body ? await readBody(response.body, MAX_PAGE_BYTES) : Buffer.alloc(0);
      if (!body) throw new SourceError(`responded with more than ${MAX_PAGE_BYTES} bytes`);
      return parsePage(body.toString());
    });
  }

  /** Reads the stream for hints until it ends, which it does by an error. */
  function readStream(onOpen: () => void): Promise<never> {
    const resume = position === undefined ? undefined : { 'last-event-id': position };
    const headers = { accept: 'text/event-stream', ...resume };
    return exchange(urlOf(target.url, '/stream'), headers, async (response, extend) => {
      requireOk(response, 'text/event-stream');
      onOpen();
      extend(MAX_SILENCE_MS);
      let rest = '';
      for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
        extend(MAX_SILENCE_MS);
        const text = rest + Buffer.from(chunk).toString('latin1');
        // A hint that the end of a chunk has split begins in the rest.
        rest = text.slice(1 - HINT.length);
        if (text.includes(HINT)) hint();
      }
      throw new SourceError('the stream has ended');
    });
  }

  /** Keeps the stream open: one that is refused, silent or cut is opened again after a pause. */
  async function follow(): Promise<void> {
    pause = undefined;
    let steady: Timer | undefined;
    try {
      await readStream(() => {
        steady = schedule(() => {
          if (failures > 0) logger.info({ url }, 'the stream of generations is open again');
          failures = 0;
        }, PAUSES.longestMs);
      });
    } catch (error) {
      if (closed) return;
      // Once per outage.
      if (++failures === 1) {
        logger.warn({ detail: describeFailure(error) }, 'the stream of generations is cut, polling continues');
      }
      pause = schedule(() => void follow(), backOffMs(failures, PAUSES, Math.random));
    } finally {
      steady?.cancel();
    }
  }

  return {
    async next(waitMs) {
      if (isAtEnd && waitMs > 0) {
        if (!isFollowing) void follow();
        isFollowing = true;
        await hinted(waitMs);
      }
      if (closed) throw new SourceError('closed');
      // Before the request: a hint while it is under way is about what comes after it.
      isAtEnd = true;
      try {
        const page = await readPage();
        position = page.position;
        if (!page.end) isAtEnd = false;
        return page;
      } catch (error) {
        isAtEnd = false;
        throw error;
      }
    },
    close() {
      closed = true;
      pause?.cancel();
      for (const abort of open) abort.abort(new SourceError('closed'));
      wake();
    },
  };
}

/** The URL of one request: the target's own query stays. */
function urlOf(target: URL, suffix: string, query: Readonly<Record<string, string>> = {}): string {
  const url = new URL(target);
  if (suffix !== '') url.pathname = `${url.pathname.replace(/\/$/, '')}${suffix}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether a connection was closed before the response, in the words of Node's `fetch` (undici). */
function isConnectionReset(error: unknown): boolean {
  const code = ownValue(ownValue(error, 'cause'), 'code');
  return code === 'ECONNRESET' || code === 'UND_ERR_SOCKET';
}

/** @throws SourceError when a response is not 200 with the expected content type */
function requireOk({ status, headers }: Response, contentType: string): void {
  if (status >= 300 && status < 400) {
    throw new SourceError(`responded with ${status}; redirects are refused, configure the final URL`);
  }
  if (status !== 200) throw new SourceError(`responded with ${status}, expected 200`);
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== contentType) {
    throw new SourceError(`responded with another content type than ${contentType}`);
  }
}
