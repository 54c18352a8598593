import { FloorList } from '../floors';
import { isGeneration, parseGeneration } from '../generation';
import { SourceError } from '../source-error';

/** Member of the sentinel: no client id is empty, and it is lost together with the set. */
export const SENTINEL = '';

/** Member of the horizon: the set is complete from its score on. No client id contains U+0000. */
export const HORIZON = '\0horizon';

/** One page of a larger read. */
export interface Page {
  readonly floors: FloorList;
  /** Members of the page, marks included. */
  readonly size: number;
  /** Score of the last member. */
  readonly lastScore: number;
}

/**
 * Reads members with their scores: pairs (RESP3) or a flat list (RESP2); scores are numbers or texts.
 * A client may be set up to return buffers in place of texts.
 *
 * @throws SourceError when a score is not a generation.
 */
export function pageOf(reply: readonly unknown[]): Page {
  const floors = new FloorList();
  let lastScore = 0;
  function add(member: unknown, score: unknown): void {
    const clientId = typeof member === 'string' ? member : String(member);
    lastScore = requireScore(score);
    if (!isMark(clientId)) floors.add(clientId, lastScore);
  }
  if (Array.isArray(reply[0])) {
    for (const pair of reply as readonly (readonly unknown[])[]) add(pair[0], pair[1]);
    return { floors, size: reply.length, lastScore };
  }
  for (let at = 0; at < reply.length; at += 2) add(reply[at], reply[at + 1]);
  return { floors, size: reply.length / 2, lastScore };
}

/** Whether a member is not a floor. */
export function isMark(member: string): boolean {
  return member === SENTINEL || member === HORIZON;
}

/** @throws SourceError when a score is not a generation. */
export function requireScore(score: unknown): number {
  const generation = typeof score === 'number' ? score : parseGeneration(String(score));
  if (!isGeneration(generation)) throw new SourceError('Redis: the set has a member whose score is not a generation');
  return generation;
}
