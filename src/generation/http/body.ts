import { setImmediate as turn } from 'node:timers/promises';
import { TextDecoder } from 'node:util';
import { ownValue } from '../../core/objects';
import { isList } from '../../core/options';
import { FloorList } from '../floors';
import { isGeneration } from '../generation';
import type { Floor, GenerationSnapshot, TakePage } from '../source';
import { SourceError } from '../source-error';

/** What a response says besides its floors. */
export type SnapshotHead = Pick<GenerationSnapshot, 'nowMs' | 'completeFromMs'>;

/** Floors per page: a few ms of work. */
const PAGE_FLOORS = 1_000;
/** Floors that are kept for a 304; after a larger response the next request is not conditional. */
const MAX_CACHED_FLOORS = 100_000;
/** Of a response that is read as a whole: a million floors take some 60 MiB. */
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_FLOORS = 100_000_000;

/** The floors of one response: handed over in pages while they arrive, or collected if nothing takes them. */
export class Pages {
  readonly #takePage: TakePage | undefined;
  readonly #progress: () => void;
  #page = new FloorList();
  #kept: FloorList[] = [];
  /** Floors so far. */
  length = 0;

  /** @param progress - starts the time limit of the response anew */
  constructor(takePage: TakePage | undefined, progress: () => void) {
    this.#takePage = takePage;
    this.#progress = progress;
  }

  /** Whether the memory for a response does not grow with its floors. */
  get isStreamed(): boolean {
    return this.#takePage !== undefined;
  }

  /** Every floor so far; `undefined` if there were too many to be kept after they were handed over. */
  get kept(): readonly Floor[] | undefined {
    return this.isStreamed && this.length > MAX_CACHED_FLOORS ? undefined : this.#kept.flatMap((page) => [...page]);
  }

  /**
   * @param entry - `{"client_id", "generation"}`
   * @throws SourceError when it is not a floor.
   */
  add(entry: unknown): void {
    const clientId = ownValue(entry, 'client_id');
    const generation = ownValue(entry, 'generation');
    if (typeof clientId !== 'string' || clientId === '' || !isGeneration(generation)) {
      throw new SourceError(`responded with an entry that is not a floor (floors[${this.length}])`);
    }
    this.#page.add(clientId, generation);
    this.length++;
  }

  /** Hands over what has come if it fills a page, and gives the event loop a turn. */
  async flush(isLast = false): Promise<void> {
    const page = this.#page;
    if (page.length < PAGE_FLOORS && !isLast) return turn();
    this.#page = new FloorList();
    if (this.isStreamed && this.length > MAX_CACHED_FLOORS) this.#kept = [];
    else this.#kept.push(page);
    if (!this.#takePage) return turn();
    this.#progress();
    await this.#takePage(page);
    this.#progress();
    return turn();
  }
}

/**
 * Reads `{"now", "count"}`, then one floor per line.
 *
 * @throws SourceError
 */
export async function readLines(chunks: AsyncIterable<Uint8Array>, pages: Pages): Promise<SnapshotHead> {
  let head: (SnapshotHead & { readonly count: number }) | undefined;
  for await (const lines of linesOf(pages.isStreamed ? chunks : bounded(chunks))) {
    head ??= readHead(parseJson(lines.shift() as string));
    for (const entry of parseLines(lines)) pages.add(entry);
    requireCount(pages.length <= head.count, pages, head.count);
    await pages.flush();
  }
  if (!head) throw new SourceError('responded with no line');
  // A proxy that gives up can end a response cleanly between two lines.
  requireCount(pages.length === head.count, pages, head.count);
  await pages.flush(true);
  const { count: _, ...rest } = head;
  return rest;
}

function requireCount(isRight: boolean, { length }: Pages, count: number): void {
  if (!isRight) throw new SourceError(`responded with ${length} floors, announced ${count}`);
}

function readHead(line: unknown): SnapshotHead & { readonly count: number } {
  const count = ownValue(line, 'count');
  if (!isGeneration(count)) throw new SourceError('responded without a "count" of floors');
  if (count > MAX_FLOORS) throw new SourceError(`announced ${count} floors, more than ${MAX_FLOORS}`);
  return { ...readTimes(line), count };
}

/**
 * Reads `{"now", "floors": [...]}`.
 *
 * @throws SourceError
 */
export async function readDocument(chunks: AsyncIterable<Uint8Array>, pages: Pages): Promise<SnapshotHead> {
  const read: Uint8Array[] = [];
  for await (const chunk of bounded(chunks)) read.push(chunk);
  const document = parseJson(decode(Buffer.concat(read), 'JSON'));
  const times = readTimes(document);
  const entries = ownValue(document, 'floors');
  if (!isList(entries)) throw new SourceError('responded without an array "floors"');
  for (const entry of entries) {
    pages.add(entry);
    if (pages.length % PAGE_FLOORS === 0) await pages.flush();
  }
  await pages.flush(true);
  return times;
}

function readTimes(document: unknown): SnapshotHead {
  const nowMs = ownValue(document, 'now');
  if (!isGeneration(nowMs)) throw new SourceError('responded without "now" in ms');
  const completeFromMs = ownValue(document, 'complete_from');
  if (completeFromMs === undefined) return { nowMs };
  if (!isGeneration(completeFromMs)) throw new SourceError('responded with a "complete_from" that is not a time in ms');
  return { nowMs, completeFromMs };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the response.
    throw new SourceError('responded with invalid JSON');
  }
}

/** In one call of the parser, which takes two thirds of the time of one call per line. */
function parseLines(lines: readonly string[]): readonly unknown[] {
  const entries = parseJson(`[${lines.join(',')}]`) as unknown[];
  if (entries.length !== lines.length) throw new SourceError('responded with invalid JSON');
  return entries;
}

async function* bounded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let length = 0;
  // Counted while it arrives: Content-Length is not reliable.
  for await (const chunk of chunks) {
    length += chunk.byteLength;
    if (length > MAX_BYTES) throw new SourceError(`responded with more than ${MAX_BYTES} bytes`);
    yield chunk;
  }
}

/** Bytes per turn of the event loop: about a ms of work. */
const BYTES_PER_TURN = 16_384;
const MAX_LINE_BYTES = 65_536;
const LINE_FEED = 10;

/**
 * Splits a response into lines while it arrives.
 *
 * @throws SourceError when it is not UTF-8, a line is longer than 64 KiB, or the last line is not terminated.
 */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[], void, undefined> {
  let rest = new Uint8Array();
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; at += BYTES_PER_TURN) {
      const piece = chunk.subarray(at, at + BYTES_PER_TURN);
      // A line feed is never a part of another character.
      const first = piece.indexOf(LINE_FEED);
      const last = piece.lastIndexOf(LINE_FEED);
      const line = Buffer.concat([rest, first < 0 ? piece : piece.subarray(0, first)]);
      // Copied, because the rest would keep the whole chunk in memory.
      rest = first < 0 ? line : new Uint8Array(piece.subarray(last + 1));
      if (line.byteLength > MAX_LINE_BYTES) {
        throw new SourceError(`responded with a line of more than ${MAX_LINE_BYTES} bytes`);
      }
      if (first < 0) continue;
      const lines = first === last ? [] : decode(piece.subarray(first + 1, last), 'UTF-8').split('\n');
      yield [decode(line, 'UTF-8'), ...lines];
    }
  }
  if (rest.byteLength > 0) {
    decode(rest, 'UTF-8');
    throw new SourceError('the response ends in the middle of a line');
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Uint8Array, expected: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new SourceError(`responded with invalid ${expected}`);
  }
}
