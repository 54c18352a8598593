import { setImmediate as turn } from 'node:timers/promises';
import { TextDecoder } from 'node:util';
import { isList } from '../../core/options';
import { ownValue } from '../../core/objects';
import { FloorList } from '../floors';
import { isGeneration } from '../generation';
import { requireOk, withPath } from './client';
import type { HttpClient } from './client';
import type { GenerationSnapshot } from '../source';
import { SourceError } from '../source-error';

/** A response that a 304 refers to. */
interface Cached {
  readonly sinceMs: number;
  readonly etag: string;
  readonly snapshot: GenerationSnapshot;
}

/** Makes the `read` of a token server: `GET /generations?since=`, with conditional requests (RFC 9110 section 13.1.2). */
export function snapshotReader(client: HttpClient, url: URL): (sinceMs: number) => Promise<GenerationSnapshot> {
  let cached: Cached | undefined;

  async function read(wantedMs: number): Promise<GenerationSnapshot> {
    const known = cached && covers(cached, wantedMs) ? cached : undefined;
    const sinceMs = known?.sinceMs ?? Math.max(0, Math.floor(wantedMs));
    const exchange = client.acquire();
    try {
      return await client.bounded(exchange, async () => {
        const condition = known && { 'if-none-match': known.etag };
        const response = await client.get(exchange, withPath(url, '', { since: String(sinceMs) }), {
          accept: ACCEPT,
          ...condition,
        });
        if (response.status === 304 && known) return known.snapshot;
        requireOk(response, RESPONSE_TYPE, 'application/x-ndjson or application/json');
        const snapshot = await readSnapshot(response);
        const etag = response.headers.get('etag');
        // After a change `since` moves on, so that the responses stay small.
        cached = etag !== null && !known ? { sinceMs, etag, snapshot } : undefined;
        return snapshot;
      });
    } finally {
      client.release(exchange);
    }
  }

  return read;
}

/**
 * Whether a cached response is also right for a read from `wantedMs`: the entity tag belongs to the URL, so the same
 * `since` is sent until something changes. The first, whole response is reused for another whole one only.
 */
function covers({ sinceMs }: Cached, wantedMs: number): boolean {
  return sinceMs === wantedMs || (sinceMs > 0 && sinceMs < wantedMs);
}

/** A million floors take some 70 MiB. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/** Lines are read while they arrive, a document only as a whole. */
const ACCEPT = 'application/x-ndjson, application/json;q=0.9';
const RESPONSE_TYPE = /^application\/(x-ndjson|json)\s*(;|$)/i;

/** @throws SourceError when the snapshot is not complete and valid in every part. */
function readSnapshot(response: Response): Promise<GenerationSnapshot> {
  const isLines = /^application\/x-ndjson/i.test(response.headers.get('content-type') ?? '');
  return isLines ? readLines(chunksOf(response)) : readDocument(chunksOf(response));
}

async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  let length = 0;
  // Counted while it arrives: Content-Length is not reliable.
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > MAX_RESPONSE_BYTES) throw new SourceError(`responded with more than ${MAX_RESPONSE_BYTES} bytes`);
    yield chunk;
  }
}

/** `{"now", "count"}`, then one floor per line. */
async function readLines(chunks: AsyncIterable<Uint8Array>): Promise<GenerationSnapshot> {
  const floors = new FloorList();
  let head: { readonly nowMs: number; readonly count: number } | undefined;
  for await (const lines of linesOf(chunks)) {
    for (const line of lines) {
      if (head) addFloor(floors, parseJson(line));
      else head = readHead(parseJson(line));
    }
  }
  if (!head) throw new SourceError('responded with no line');
  // A proxy that gives up can end a response cleanly between two lines.
  if (floors.length !== head.count) {
    throw new SourceError(`responded with ${floors.length} floors, announced ${head.count}`);
  }
  return { floors, nowMs: head.nowMs };
}

function readHead(line: unknown): { nowMs: number; count: number } {
  const count = ownValue(line, 'count');
  if (!isGeneration(count)) throw new SourceError('responded without a "count" of floors');
  return { nowMs: requireNow(line), count };
}

/** `{"now", "floors": [...]}` */
async function readDocument(chunks: AsyncIterable<Uint8Array>): Promise<GenerationSnapshot> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  const document = parseJson(Buffer.concat(read));
  const nowMs = requireNow(document);
  const entries = ownValue(document, 'floors');
  if (!isList(entries)) throw new SourceError('responded without an array "floors"');
  const floors = new FloorList();
  for (const entry of entries) addFloor(floors, entry);
  return { floors, nowMs };
}

function requireNow(document: unknown): number {
  const now = ownValue(document, 'now');
  if (isGeneration(now)) return now;
  throw new SourceError('responded without "now" in ms');
}

function parseJson(text: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : new TextDecoder('utf-8', { fatal: true }).decode(text));
  } catch {
    // The parser's message quotes the response.
    throw new SourceError('responded with invalid JSON');
  }
}

function addFloor(floors: FloorList, entry: unknown): void {
  const clientId = ownValue(entry, 'client_id');
  const generation = ownValue(entry, 'generation');
  if (typeof clientId !== 'string' || clientId === '' || !isGeneration(generation)) {
    throw new SourceError(`responded with an entry that is not a floor (floors[${floors.length}])`);
  }
  floors.add(clientId, generation);
}

/** Bytes per turn of the event loop: a few ms of work. */
const BYTES_PER_TURN = 65_536;
const MAX_LINE_LENGTH = 65_536;

/**
 * Splits a response into lines while it arrives, and yields to the event loop between two batches.
 *
 * @throws SourceError when it is not UTF-8, a line is longer than 64 Ki characters, or the last line is not terminated.
 */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[], void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; at += BYTES_PER_TURN) {
      const lines = (rest + decode(decoder, chunk.subarray(at, at + BYTES_PER_TURN))).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE_LENGTH)
        throw new SourceError(`responded with a line of more than ${MAX_LINE_LENGTH} characters`);
      yield lines;
      await turn();
    }
  }
  if (rest + decode(decoder) !== '') throw new SourceError('the response ends in the middle of a line');
}

/** Without bytes: flushes the decoder, which throws for an incomplete character. */
function decode(decoder: TextDecoder, bytes?: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: bytes !== undefined });
  } catch {
    throw new SourceError('responded with invalid UTF-8');
  }
}
