import { setImmediate as turn } from 'node:timers/promises';
import { TextDecoder } from 'node:util';
import { isList } from '../../core/options';
import { ownValue } from '../../core/objects';
import { FloorList } from '../floor-list';
import { isGeneration } from '../generation';
import { requireOk, withPath } from './client';
import type { HttpClient } from './client';
import type { GenerationSnapshot } from '../source';
import { SourceError } from '../source-error';

interface Remembered {
  readonly sinceMs: number;
  readonly etag: string;
  readonly snapshot: GenerationSnapshot;
}

/** Makes the `read` of a token server: `GET /generations?since=`, asked conditionally (RFC 9110 section 13.1.2). */
export function snapshotReader(client: HttpClient, address: URL): (sinceMs: number) => Promise<GenerationSnapshot> {
  let remembered: Remembered | undefined;

  async function read(wantedMs: number): Promise<GenerationSnapshot> {
    const known = remembered && covers(remembered, wantedMs) ? remembered : undefined;
    const sinceMs = known?.sinceMs ?? Math.max(0, Math.floor(wantedMs));
    const exchange = client.acquire();
    try {
      return await client.bounded(exchange, async () => {
        const url = withPath(address, '', { since: String(sinceMs) });
        const condition = known && { 'if-none-match': known.etag };
        const response = await client.get(exchange, url, { accept: ACCEPT, ...condition });
        if (response.status === 304 && known) return known.snapshot;
        requireOk(response, ANSWER_TYPE, ANSWER_TYPES);
        const snapshot = await readSnapshot(response);
        const etag = response.headers.get('etag');
        // After a change the time asked from moves on, so that the responses stay small.
        remembered = etag !== null && !known ? { sinceMs, etag, snapshot } : undefined;
        return snapshot;
      });
    } finally {
      client.release(exchange);
    }
  }

  return read;
}

/**
 * Whether an earlier answer can serve for a read from `wantedMs`: the entity tag belongs to the address, so the same
 * `since` is asked until something changes. The first, whole response serves for another whole one only.
 */
function covers({ sinceMs }: Remembered, wantedMs: number): boolean {
  return sinceMs === wantedMs || (sinceMs > 0 && sinceMs < wantedMs);
}

/** A million floors take some 70 MiB. */
const LARGEST_ANSWER_BYTES = 256 * 1024 * 1024;

/** What is asked for: lines can be read while they arrive, a document only as a whole. */
const ACCEPT = 'application/x-ndjson, application/json;q=0.9';
/** Content types that a response may have, and how they are called. */
const ANSWER_TYPE = /^application\/(x-ndjson|json)\s*(;|$)/i;
const ANSWER_TYPES = 'application/x-ndjson or application/json';

/**
 * Reads a snapshot in either form.
 *
 * @throws SourceError when it is not complete and right in every part.
 */
function readSnapshot(response: Response): Promise<GenerationSnapshot> {
  const isLines = /^application\/x-ndjson/i.test(response.headers.get('content-type') ?? '');
  return isLines ? readLines(chunksOf(response)) : readDocument(chunksOf(response));
}

async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  let length = 0;
  // Counted while it arrives: a Content-Length is a claim only.
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > LARGEST_ANSWER_BYTES) throw new SourceError(`answered more than ${LARGEST_ANSWER_BYTES} bytes`);
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
  if (!head) throw new SourceError('answered no line');
  // A proxy that gives up can end a response at a line's end, in good order.
  if (floors.length !== head.count) throw new SourceError(`answered ${floors.length} floors, announced ${head.count}`);
  return { floors, nowMs: head.nowMs };
}

function readHead(line: unknown): { nowMs: number; count: number } {
  const count = ownValue(line, 'count');
  if (!isGeneration(count)) throw new SourceError('answered no "count" of floors');
  return { nowMs: requireNow(line), count };
}

/** `{"now", "floors": [...]}` */
async function readDocument(chunks: AsyncIterable<Uint8Array>): Promise<GenerationSnapshot> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  const document = parseJson(Buffer.concat(read));
  const nowMs = requireNow(document);
  const entries = ownValue(document, 'floors');
  if (!isList(entries)) throw new SourceError('answered no array "floors"');
  const floors = new FloorList();
  for (const entry of entries) addFloor(floors, entry);
  return { floors, nowMs };
}

function requireNow(document: unknown): number {
  const now = ownValue(document, 'now');
  if (isGeneration(now)) return now;
  throw new SourceError('answered no "now" in ms');
}

function parseJson(text: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : new TextDecoder('utf-8', { fatal: true }).decode(text));
  } catch {
    // The parser's message quotes the response.
    throw new SourceError('answered no valid JSON');
  }
}

function addFloor(floors: FloorList, entry: unknown): void {
  const clientId = ownValue(entry, 'client_id');
  const generation = ownValue(entry, 'generation');
  if (typeof clientId !== 'string' || clientId === '' || !isGeneration(generation)) {
    throw new SourceError(`answered an entry that is no floor (floors[${floors.length}])`);
  }
  floors.add(clientId, generation);
}

/** Bytes that are looked at in one go: some ms of work with what is made of the lines. */
const PIECE = 65_536;
const LONGEST_LINE = 65_536;

/**
 * Cuts a response into lines, as its bytes arrive and whatever their boundaries tear apart. Between two batches the event
 * loop gets its turn, also when everything has arrived already.
 *
 * @throws SourceError when it is not UTF-8, a line is longer than 64 Ki characters, or the last one has no end.
 */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[], void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; at += PIECE) {
      const lines = (rest + decode(decoder, chunk.subarray(at, at + PIECE))).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST_LINE) throw new SourceError(`answered a line of more than ${LONGEST_LINE} characters`);
      yield lines;
      await turn();
    }
  }
  if (rest + decode(decoder) !== '') throw new SourceError('the answer ends in the middle of a line');
}

/** Without bytes: what is left of a character that never came to its end. */
function decode(decoder: TextDecoder, bytes?: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: bytes !== undefined });
  } catch {
    throw new SourceError('answered no valid UTF-8');
  }
}
