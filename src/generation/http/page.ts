import { ownValue } from '../../core/objects';
import { isList } from '../../core/options';
import { isGeneration } from '../generation';
import type { Batch, Change, Mark } from '../log';
import { SourceError } from '../source-error';

/** What `GET /generations?after=` responds with: a batch, and the position behind it. */
export interface Page extends Batch {
  /** Opaque to clients: 1 to 256 printable characters, so that it fits into `Last-Event-ID`. */
  readonly position: string;
}

/** More than 2,000 changes with the longest client ids take. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;
/** Longest position, in characters. */
export const MAX_POSITION_LENGTH = 256;

/** The JSON of a page. */
export function pageText({ position, end, mark, changes }: Page): string {
  const head = `{"position":${JSON.stringify(position)},"end":${end}${mark ? `,"mark":${markText(mark)}` : ''}`;
  return `${head},"changes":[${changes.map(changeText).join(',')}]}`;
}

/** The JSON of a change, in half the time that it takes as an object. */
export function changeText([clientId, generation]: Change): string {
  return `{"client_id":${JSON.stringify(clientId)},"generation":${generation}}`;
}

/** The JSON of a mark. */
export function markText({ epoch, unit, completeMs, keptMs }: Mark): string {
  return JSON.stringify({ epoch, unit, complete_ms: completeMs, kept_ms: keptMs });
}

/**
 * Reads the JSON of a page.
 *
 * @throws SourceError when it is not complete and valid in every part; the message quotes nothing of it
 */
export function parsePage(text: string): Page {
  const document = parseJson(text);
  const [position, end, entries] = ['position', 'end', 'changes'].map((name) => ownValue(document, name));
  if (entries === undefined && ownValue(document, 'floors') !== undefined) {
    throw new SourceError('responded with "floors", as earlier versions of Tillgate did: update the token server');
  }
  if (typeof position !== 'string' || !/^[\x21-\x7e]{1,256}$/.test(position)) {
    throw new SourceError('responded without a "position" of 1 to 256 printable characters');
  }
  if (typeof end !== 'boolean') throw new SourceError('responded without "end": true or false');
  if (!isList(entries)) throw new SourceError('responded without an array "changes"');
  if (!end && entries.length === 0) throw new SourceError('responded with neither changes nor the end');
  return { position, end, changes: entries.map(parseChange), mark: parseMark(ownValue(document, 'mark')) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the response.
    throw new SourceError('responded with invalid JSON');
  }
}

function parseChange(entry: unknown, index: number): Change {
  const clientId = ownValue(entry, 'client_id');
  const generation = ownValue(entry, 'generation');
  if (typeof clientId === 'string' && clientId !== '' && isGeneration(generation)) return [clientId, generation];
  throw new SourceError(`responded with an entry that is not a change (changes[${index}])`);
}

function parseMark(mark: unknown): Mark | undefined {
  if (mark === undefined) return undefined;
  const epoch = ownValue(mark, 'epoch');
  const [unit, completeMs, keptMs] = ['unit', 'complete_ms', 'kept_ms'].map((name) => ownValue(mark, name));
  if (typeof epoch === 'string' && isGeneration(unit) && isGeneration(completeMs) && isGeneration(keptMs)) {
    return { epoch, unit, completeMs, keptMs };
  }
  throw new SourceError('responded with a "mark" that is not valid');
}
