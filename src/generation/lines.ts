import { setImmediate as turn } from 'node:timers/promises';
import { TextDecoder } from 'node:util';
import { SourceError } from './source-error';

/** Bytes that are looked at in one go: some ms of work with what is made of the lines. */
const PIECE = 65_536;
const LONGEST_LINE = 65_536;

/**
 * Cuts an answer into lines, as its bytes arrive and whatever their boundaries tear apart. Between two batches the event
 * loop gets its turn, also when everything has arrived already.
 *
 * @throws SourceError when it is no UTF-8, a line is longer than 64 Ki characters, or the last one has no end.
 */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[], void, undefined> {
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
