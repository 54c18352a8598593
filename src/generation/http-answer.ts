import { FloorList } from './floor-list';
import { isGeneration } from './generation';
import { linesOf } from './lines';
import type { GenerationSnapshot } from './source';
import { SourceError } from './source-error';

/** A million floors take some 70 MiB. */
const LARGEST_ANSWER_BYTES = 256 * 1024 * 1024;

/** What is asked for: lines can be read while they arrive, a document only as a whole. */
export const ACCEPT = 'application/x-ndjson, application/json;q=0.9';
/** Content types that an answer may have, and how they are called. */
export const ANSWER_TYPE = /^application\/(x-ndjson|json)\s*(;|$)/i;
export const ANSWER_TYPES = 'application/x-ndjson or application/json';

/**
 * Reads a snapshot in either form.
 *
 * @throws SourceError when it is not complete and right in every part.
 */
export function readSnapshot(response: Response): Promise<GenerationSnapshot> {
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
  // A proxy that gives up can end an answer at a line's end, in good order.
  if (floors.length !== head.count) throw new SourceError(`answered ${floors.length} floors, announced ${head.count}`);
  return { floors, nowMs: head.nowMs };
}

function readHead(line: unknown): { nowMs: number; count: number } {
  const { now, count } = (line ?? {}) as { now?: unknown; count?: unknown };
  if (!isGeneration(count)) throw new SourceError('answered no "count" of floors');
  return { nowMs: requireNow(now), count };
}

/** `{"now", "floors": [...]}` */
async function readDocument(chunks: AsyncIterable<Uint8Array>): Promise<GenerationSnapshot> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  const answer = parseJson(decode(Buffer.concat(read))) as { now?: unknown; floors?: unknown } | null;
  const nowMs = requireNow(answer?.now);
  if (!Array.isArray(answer?.floors)) throw new SourceError('answered no array "floors"');
  const floors = new FloorList();
  for (const entry of answer.floors) addFloor(floors, entry);
  return { floors, nowMs };
}

function requireNow(now: unknown): number {
  if (isGeneration(now)) return now;
  throw new SourceError('answered no "now" in ms');
}

function decode(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new SourceError('answered no valid JSON');
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the answer.
    throw new SourceError('answered no valid JSON');
  }
}

function addFloor(floors: FloorList, entry: unknown): void {
  const { client_id, generation } = (entry ?? {}) as { client_id?: unknown; generation?: unknown };
  if (typeof client_id !== 'string' || client_id === '' || !isGeneration(generation)) {
    throw new SourceError(`answered an entry that is no floor (floors[${floors.length}])`);
  }
  floors.add(client_id, generation);
}
