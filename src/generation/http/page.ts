import { attempt, ownMembers, ownValue } from '../../core/objects';
import { isList } from '../../core/options';
import { isGeneration } from '../generation';
import { requireFormat, SourceError } from '../log';
import type { Batch, Change, Mark } from '../log';

/**
 * Reads the JSON of a page.
 *
 * @throws SourceError when it is not complete and valid in every part; the message quotes nothing of it
 */
export function parsePage(text: string): Batch & { readonly position: string } {
  // Its message quotes the response. Parsing a large page strictly takes three times as long.
  const document = attempt(() => JSON.parse(text) as unknown);
  if (document === undefined) refuse('with invalid JSON');
  const { position, end, changes, mark, floors } = ownMembers(Object(document) as Record<string, unknown>);
  if (changes === undefined && floors !== undefined) {
    refuse('with "floors", as earlier versions of Tillgate did: update the token server');
  }
  if (typeof position !== 'string' || !/^[\x21-\x7e]{1,256}$/.test(position)) {
    refuse('without a "position" of 1 to 256 printable characters');
  }
  if (typeof end !== 'boolean') refuse('without "end": true or false');
  if (!isList(changes)) refuse('without an array "changes"');
  if (!end && changes.length === 0) refuse('with neither changes nor the end');
  return { position, end, changes: changes.map(parseChange), mark: mark === undefined ? undefined : parseMark(mark) };
}

function parseChange(entry: unknown, index: number): Change {
  const [clientId, generation] = [ownValue(entry, 'client_id'), ownValue(entry, 'generation')];
  if (typeof clientId === 'string' && clientId !== '' && isGeneration(generation)) return [clientId, generation];
  return refuse(`with an entry that is not a change (changes[${index}])`);
}

/**
 * Reads the change of an event of the stream.
 *
 * @throws SyntaxError or SourceError when it has none
 */
export function changeOfEvent(event: string): Change {
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
  return isMark ? { epoch, unit, completeMs, keptMs } : refuse('with a "mark" that is not valid');
}

function refuse(what: string): never {
  throw new SourceError(`responded ${what}`);
}
