import { attempt, isList, isObject, ownMembers, ownValue } from '../../core/objects';
import { dependencies, option, readOptions } from '../../core/options';
import { describe } from '../../core/words';
import type { Dependencies, TableOf } from '../../core/options';
import { hasUserInfo, isSecureUrl, loggableUrl, parseUrl } from '../../core/urls';
import { fetchBytes, FetchError, OutgoingRequests } from '../../net/http';
import { isGeneration } from '../generation';
import { SourceError, describeFailure, requireFormat } from '../log';
import type { Batch, Change, GenerationSource, LogReader, Mark } from '../log';
import { readersOf, type Wait } from '../readers';

/** Options of `httpGenerations()`. */
export interface HttpGenerationsOptions extends Pick<Dependencies, 'fetch' | 'schedule'> {
  /**
   * URL of the token server's `/generations`; a URL without a path is completed. Credentials in it
   * (`https://id:secret@host`) are sent as HTTP Basic.
   */
  readonly url: string;
  /** Sent with every request, for example `{ authorization: 'Bearer ...' }`. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Accepts an `http:` URL on another host than loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** Longest time for one response, in ms, after the time that the server holds it. Default 5000. */
  readonly timeoutMs?: number | undefined;
}

const HTTP_OPTIONS = {
  url: option.string(''),
  headers: option('an object of strings', readHeaders),
  allowHttp: option.boolean(false),
  timeoutMs: option.number({ unit: 'milliseconds', min: 1, max: 600_000 }, 5_000),
  ...dependencies('fetch', 'schedule'),
} satisfies TableOf<HttpGenerationsOptions>;

/**
 * The log of a token server over HTTP, read only: `GET /generations?after=<position>&wait=<ms>`, a long poll. One that is held
 * keeps the process alive until `close()`.
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
  const readers = readersOf(connection.schedule, (wait) => httpReader(connection, wait));
  return { ...readers, mark: true, close: () => Promise.resolve(readers.close()) };
}

/** Longest time that a server holds a response, in ms. */
const MAX_POLL_MS = 30_000;
/** A server that does not wait is asked no more often than this, in ms. */
const SHORTEST_WAIT_MS = 250;
/** More than 2,000 changes with the longest client ids take. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

function httpReader(
  { url: base, headers: given, fetch, schedule, timeoutMs }: ReturnType<typeof readConnection>,
  { pause, wake }: Wait,
): LogReader {
  const requests = new OutgoingRequests(schedule);
  const headers = { ...given, 'cache-control': 'no-cache' };
  let position: string | undefined;

  async function readPage(waitMs: number): Promise<ReturnType<typeof parsePage>> {
    const url = new URL(base);
    if (position !== undefined) url.searchParams.set('after', position);
    if (waitMs > 0) url.searchParams.set('wait', String(waitMs));
    const limits = { contentType: 'application/json', maxBytes: MAX_PAGE_BYTES };
    try {
      return await requests.run(waitMs + timeoutMs, async (signal) =>
        parsePage((await fetchBytes(url.href, { fetch, signal, headers, ...limits })).toString()),
      );
    } catch (cause) {
      if (cause instanceof FetchError) throw new SourceError(cause.message, { cause });
      const what = cause instanceof SourceError ? cause.message : `could not be read: ${describeFailure(cause)}`;
      throw new SourceError(`${loggableUrl(url.href)} ${what}`, { cause });
    }
  }

  return {
    async next(waitMs) {
      const heldMs = Math.min(Math.ceil(waitMs), MAX_POLL_MS);
      const paused = heldMs > 0 ? pause(Math.min(heldMs, SHORTEST_WAIT_MS)) : undefined;
      try {
        const page = await readPage(heldMs);
        // A server may repeat its last change.
        if (page.changes.length === 0 || (page.end && page.position === position)) await paused;
        ({ position } = page);
        return page;
      } finally {
        wake();
      }
    },
    close: () => requests.close(),
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
  const { position, end, changes, mark } = membersOf(document);
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

function parseMark(mark: unknown): Mark {
  const { format, epoch, unit, complete_ms: completeMs, kept_ms: keptMs } = membersOf(mark);
  requireFormat(format);
  const isMark = typeof epoch === 'string' && isGeneration(unit) && isGeneration(completeMs) && isGeneration(keptMs);
  return isMark ? { epoch, unit, completeMs, keptMs } : refusePage('with a "mark" that is not valid');
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return ownMembers(Object(value) as Record<string, unknown>);
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
  const given = readOptions('httpGenerations', options, HTTP_OPTIONS);
  // Node's error repeats its input, and with it the password.
  const url = parseUrl(given.url);
  if (!url || !/^https?:$/.test(url.protocol) || url.hash !== '') {
    throwOptionError('option "url" must be an absolute http: or https: URL without a fragment');
  }
  if (!given.allowHttp && !isSecureUrl(url.href)) {
    throwOptionError('option "url" must be https: (http: is accepted on loopback only, or with allowHttp: true)');
  }
  const headers = ownMembers(given.headers ?? {}) as Record<string, string>;
  if (hasUserInfo(url.href)) {
    if (headers['authorization'] !== undefined)
      throwOptionError('credentials in "url" and an Authorization header exclude each other');
    const credentials = attempt(() => decodeURIComponent(`${url.username}:${url.password}`));
    if (credentials === undefined) throwOptionError('the credentials in "url" must be percent-encoded');
    headers['authorization'] = `Basic ${Buffer.from(credentials).toString('base64')}`;
  }
  url.username = '';
  url.password = '';
  if (url.pathname === '/') url.pathname = '/generations';
  // Without credentials, the URL is safe to log without its query.
  return { ...given, url, headers };
}

/** What a header may be (RFC 9110 sections 5.5 and 5.6.2). Not checked by `Headers`, which would load `fetch`. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function readHeaders(given: unknown): Readonly<Record<string, string>> | undefined {
  if (!isObject(given)) return undefined;
  const headers = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(given)) {
    const isValid = typeof value === 'string' && HEADER_NAME.test(name) && HEADER_VALUE.test(value.trim());
    // Not the value, which may be a secret.
    if (!isValid) throwOptionError(`option "headers" has no valid header under ${describe(name)}`);
    headers[name.toLowerCase()] = value.trim();
  }
  return headers;
}

function throwOptionError(what: string): never {
  throw new TypeError(`httpGenerations(): ${what}`);
}
