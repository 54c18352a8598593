import type { Timer } from '../../core/clock';
import { attempt, isObject, ownMembers, ownValue } from '../../core/objects';
import { dependencies, describe, isList, option, readOptions } from '../../core/options';
import type { Dependencies, TableOf } from '../../core/options';
import { Outage } from '../../core/outage';
import { hasUserInfo, isSecureUrl, loggableUrl, parseUrl, withoutSlash } from '../../core/urls';
import { Exchanges, exchange, fetchBytes, FetchError } from '../../token/http';
import type { Exchange } from '../../token/http';
import { isGeneration } from '../generation';
import { SourceError, describeFailure, requireFormat } from '../log';
import type { Batch, Change, GenerationSource, LogReader, Mark } from '../log';
import type { SourceDependencies } from '../source-url';

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

const HTTP_OPTIONS = {
  url: option.string(''),
  headers: option('an object of strings', readHeaders),
  allowHttp: option.boolean(false),
  timeoutMs: option.number({ unit: 'ms', min: 1, max: 600_000 }, 5_000),
  ...dependencies('fetch', 'schedule', 'logger'),
} satisfies TableOf<HttpGenerationsOptions>;

/**
 * The log of a token server over HTTP, read only: `GET /generations?after=`, and its event stream, which
 * makes it fast. An open stream keeps the process alive until `close()`.
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
  const connection = readConnection(options);
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

/** The server writes a mark every second: a stream that is silent for that long is dead, even if TCP is not. */
const MAX_SILENCE_MS = 15_000;
/** Pauses before the stream is opened again. A proxy may cut every stream soon: only one that stays open resets them. */
const PAUSES = { firstMs: 250, longestMs: 30_000 };
/** More than 2,000 changes with the longest client ids take. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;
/** Longest event that is read. */
const MAX_EVENT_CHARACTERS = 65_536;
/** Changes of the stream that are held until the next call; the page has the others. */
const MAX_STREAMED = 2_000;

function httpReader(connection: ReturnType<typeof readConnection>): LogReader {
  const { base, headers: ownHeaders, fetch, schedule, timeoutMs, logger } = connection;
  const url = loggableUrl(base.href);
  const exchanges = new Exchanges(schedule);
  let position: string | undefined;
  /** Whether the last page reached the end. */
  let isAtEnd = false;
  /** Whether a change was announced since the last page was requested. */
  let isHinted = false;
  /** The position behind the last event of the stream. */
  let streamPosition: string | undefined;
  /** What the stream has delivered since the last call, and the positions before and behind it. */
  let streamed:
    { readonly after: string | undefined; position: string | undefined; readonly changes: Change[] } | undefined;
  let following: Promise<void> | undefined;
  const outage = new Outage(PAUSES);
  let pause: Timer | undefined;
  let closed = false;
  let wake = (): void => undefined;

  /** Sends one request and hands its response to `read`, within the time limit. */
  async function request<Value>(
    { href }: URL,
    contentType: string,
    headers: Readonly<Record<string, string>>,
    limitMs: number,
    read: (url: string, options: Exchange, progress: () => void) => Promise<Value>,
  ): Promise<Value> {
    const sent = { ...ownHeaders, 'cache-control': 'no-cache', ...headers };
    try {
      return await exchanges.run(limitMs, (signal, progress) =>
        read(href, { fetch, signal, headers: sent, contentType, maxBytes: MAX_PAGE_BYTES }, progress),
      );
    } catch (cause) {
      if (cause instanceof FetchError) throw new SourceError(cause.message, { cause });
      const what = cause instanceof SourceError ? cause.message : `could not be read: ${describeFailure(cause)}`;
      throw new SourceError(`${loggableUrl(href)} ${what}`, { cause });
    }
  }

  function readPage(): Promise<ReturnType<typeof parsePage>> {
    const page = new URL(base);
    if (position !== undefined) page.searchParams.set('after', position);
    return request(page, 'application/json', {}, timeoutMs, async (href, options) =>
      parsePage((await fetchBytes(href, options)).toString()),
    );
  }

  /** Adds a change to those that follow each other without a gap. */
  function deliver(event: string): void {
    const change = attempt(() => changeOfEvent(event));
    streamed ??= { after: streamPosition, position: streamPosition, changes: [] };
    const isNext = streamed.position === streamPosition && streamed.changes.length < MAX_STREAMED;
    streamPosition = /^id: ?([\x21-\x7e]+)$/m.exec(event)?.[1];
    if (!change || !isNext) return;
    streamed.changes.push(change);
    streamed.position = streamPosition;
  }

  function noteRecovery(): void {
    outage.end((fields) => logger.info({ url, ...fields }, 'the stream of generations is open again'));
  }

  async function readEvents(chunks: AsyncIterable<Uint8Array>, progress: () => void): Promise<never> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of chunks) {
      progress();
      const events = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/);
      rest = events.pop() as string;
      if (rest.length > MAX_EVENT_CHARACTERS) throw new SourceError('sent an event that is too long');
      for (const event of events.filter((event) => /^event: ?change$/m.test(event))) {
        isHinted = true;
        deliver(event);
      }
      if (isHinted) wake();
    }
    throw new SourceError('ended the stream');
  }

  /** Keeps the stream open and reads its changes: one that is refused, silent or cut is opened again after a pause. */
  async function follow(): Promise<void> {
    streamPosition = position;
    const stream = new URL(base);
    stream.pathname = `${withoutSlash(stream.pathname)}/stream`;
    const headers: Record<string, string> = position === undefined ? {} : { 'last-event-id': position };
    let steady: Timer | undefined;
    try {
      await request(stream, 'text/event-stream', headers, MAX_SILENCE_MS, (href, options, progress) =>
        exchange(href, options, ({ body }) => {
          steady = schedule(noteRecovery, PAUSES.longestMs);
          return readEvents((body ?? []) as AsyncIterable<Uint8Array>, progress);
        }),
      );
    } catch (error) {
      steady?.cancel();
      if (closed) return;
      const pauseMs = outage.fail(describeFailure(error), (failure) => {
        logger.warn(failure, 'the stream of generations is cut, polling continues');
      });
      pause = schedule(() => void follow(), pauseMs);
    }
  }

  return {
    async next(waitMs) {
      if (isAtEnd && !isHinted && waitMs > 0) {
        following ??= follow();
        const woken = new Promise<void>((resolve) => (wake = resolve));
        const timer = schedule(() => wake(), waitMs);
        await woken;
        timer.cancel();
      }
      if (closed) throw new SourceError('closed');
      const delivered = streamed;
      streamed = undefined;
      if (delivered?.position !== undefined && delivered.after === position && delivered.changes.length > 0) {
        // In force one request earlier. Only a page tells what was the end of the log at a known time.
        ({ position } = delivered);
        return { changes: delivered.changes, end: false };
      }
      isAtEnd = false;
      // Before the request: a hint while it is under way is about what comes after it.
      isHinted = false;
      const page = await readPage();
      ({ position, end: isAtEnd } = page);
      return page;
    },
    close() {
      closed = true;
      pause?.cancel();
      exchanges.close();
      wake();
    },
  };
}

/**
 * Reads the JSON of a page.
 *
 * @throws SourceError when it is not complete and valid in every part; the message quotes nothing of it
 */
function parsePage(text: string): Batch & { readonly position: string } {
  // Its message quotes the response. Parsing a large page strictly takes three times as long.
  const document = attempt(() => JSON.parse(text) as unknown);
  if (document === undefined) refusePage('with invalid JSON');
  const { position, end, changes, mark, floors } = ownMembers(Object(document) as Record<string, unknown>);
  if (changes === undefined && floors !== undefined) {
    refusePage('with "floors", as earlier versions of Tillgate did: update the token server');
  }
  if (typeof position !== 'string' || !/^[\x21-\x7e]{1,256}$/.test(position)) {
    refusePage('without a "position" of 1 to 256 printable characters');
  }
  if (typeof end !== 'boolean') refusePage('without "end": true or false');
  if (!isList(changes)) refusePage('without an array "changes"');
  if (!end && changes.length === 0) refusePage('with neither changes nor the end');
  return { position, end, changes: changes.map(parseChange), mark: mark === undefined ? undefined : parseMark(mark) };
}

function parseChange(entry: unknown, index: number): Change {
  const [clientId, generation] = [ownValue(entry, 'client_id'), ownValue(entry, 'generation')];
  if (typeof clientId === 'string' && clientId !== '' && isGeneration(generation)) return [clientId, generation];
  return refusePage(`with an entry that is not a change (changes[${index}])`);
}

/**
 * Reads the change of an event of the stream.
 *
 * @throws SyntaxError or SourceError when it has none
 */
function changeOfEvent(event: string): Change {
  return parseChange(JSON.parse(/^data: ?(.*)$/m.exec(event)?.[1] ?? ''), 0);
}

function parseMark(mark: unknown): Mark {
  const {
    format,
    epoch,
    unit,
    complete_ms: completeMs,
    kept_ms: keptMs,
  } = ownMembers(Object(mark) as Record<string, unknown>);
  requireFormat(format);
  const isMark = typeof epoch === 'string' && isGeneration(unit) && isGeneration(completeMs) && isGeneration(keptMs);
  return isMark ? { epoch, unit, completeMs, keptMs } : refusePage('with a "mark" that is not valid');
}

function refusePage(what: string): never {
  throw new SourceError(`responded ${what}`);
}

/**
 * Reads the options: credentials in the URL become a Basic header (RFC 7617), an empty path becomes `/generations`.
 *
 * @throws TypeError when one is wrong; the message holds neither credentials nor header values.
 */
function readConnection(options: HttpGenerationsOptions) {
  const {
    url: given,
    headers: givenHeaders,
    allowHttp,
    ...others
  } = readOptions('httpGenerations', options, HTTP_OPTIONS);
  // Node's error repeats its input, and with it the password.
  const url = parseUrl(given);
  if (!url || !/^https?:$/.test(url.protocol) || url.hash !== '') {
    refuse('option "url" must be an absolute http: or https: URL without a fragment');
  }
  if (!allowHttp && !isSecureUrl(url.href)) {
    refuse('option "url" must be https: (http: is accepted on loopback only, or with allowHttp: true)');
  }
  const headers = new Headers(givenHeaders);
  if (hasUserInfo(url.href)) {
    if (headers.has('authorization')) refuse('credentials in "url" and an Authorization header exclude each other');
    const credentials = attempt(() => decodeURIComponent(`${url.username}:${url.password}`));
    if (credentials === undefined) refuse('the credentials in "url" must be percent-encoded');
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
  }
  [url.username, url.password] = ['', ''];
  if (url.pathname === '/') url.pathname = '/generations';
  // Without credentials, the URL is safe to log without its query.
  return { ...others, base: url, headers: Object.fromEntries(headers) };
}

function readHeaders(given: unknown): Headers | undefined {
  if (!isObject(given)) return undefined;
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    // Node's error repeats the value, and that may be a secret.
    const isValid = typeof value === 'string' && attempt(() => new Headers([[name, value]])) !== undefined;
    if (!isValid) refuse(`option "headers" has no valid header under ${describe(name)}`);
    headers.set(name, value);
  }
  return headers;
}

function refuse(what: string): never {
  throw new TypeError(`httpGenerations(): ${what}`);
}
