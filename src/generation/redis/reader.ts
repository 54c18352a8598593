import { parseGeneration } from '../generation';
import type { Batch, Change, LogReader, Mark } from '../log';
import { SourceError } from '../source-error';
import type { RedisCommands } from './commands';

/** Entries per command: some 10 ms of work. */
const PAGE = 2_000;
/** The mark is written every second, so that it is among the last entries, except after many changes by others. */
const TAIL = 100;
/** Before the oldest entry. */
const START = '0-0';

/** An entry of the stream: its id, then names and values in turn. */
type Entry = readonly [id: unknown, fields: readonly unknown[]];

/** Reads the stream from its oldest entry on. @param commands - of this reader alone, because it blocks */
export function redisReader(commands: RedisCommands, key: string, onClose: () => unknown): LogReader {
  let position = START;
  /** Of the mark that was in the log before it was read from its start; positions belong to it. */
  let epoch: string | undefined;
  let isEpochKnown = false;

  /** The last entries, the newest first. */
  async function tail(count: number): Promise<readonly Entry[]> {
    return entriesOf(await commands.run(['XREVRANGE', key, '+', '-', 'COUNT', String(count)]));
  }

  /** Starts again at the oldest entry if the log ends before the position: it was wiped, or went back. */
  async function isStillThere(): Promise<boolean> {
    if (position === START) return true;
    const [last] = await tail(1);
    if (last && sortable(last[0]) >= sortable(position)) return true;
    [position, isEpochKnown] = [START, false];
    return false;
  }

  return {
    async next(waitMs): Promise<Batch> {
      if (!isEpochKnown) {
        const marks = (await tail(TAIL)).map(([, fields]) => markOf(fields));
        epoch = marks.find((mark) => mark !== undefined)?.epoch;
        isEpochKnown = true;
      }
      // BLOCK 0 would be for ever.
      const block = waitMs > 0 ? ['BLOCK', String(Math.ceil(waitMs))] : [];
      const command = ['XREAD', 'COUNT', String(PAGE), ...block, 'STREAMS', key, position];
      const entries = streamOf(await commands.run(command, waitMs));
      const last = entries.at(-1);
      if (!last) return { changes: [], end: await isStillThere() };

      const changes: Change[] = [];
      let mark: Mark | undefined;
      for (const [, fields] of entries) {
        const found = fields[0] === 'client_id' ? undefined : markOf(fields);
        if (found) mark = found;
        else changes.push(changeOf(fields));
      }
      const isReplaced = mark !== undefined && mark.epoch !== epoch && position !== START;
      epoch = mark?.epoch ?? epoch;
      position = isReplaced ? START : String(last[0]);
      return isReplaced ? { changes, end: false } : { changes, mark, end: entries.length < PAGE };
    },
    close() {
      onClose();
      commands.close();
    },
  };
}

/** The entries in a reply to XREAD: nil, `[[key, entries]]` (RESP2), or a map, which each client returns in its own way. */
function streamOf(reply: unknown): readonly Entry[] {
  if (reply === null || reply === undefined) return [];
  if (reply instanceof Map) return entriesOf([...reply.values()][0]);
  if (!Array.isArray(reply)) return entriesOf(Object.values(reply)[0]);
  return entriesOf(Array.isArray(reply[0]) ? (reply[0] as readonly unknown[])[1] : reply[1]);
}

/** @throws SourceError when it is not a list of entries */
function entriesOf(reply: unknown): readonly Entry[] {
  if (!Array.isArray(reply)) throw new SourceError('Redis: the reply is not a list of entries');
  return reply as readonly Entry[];
}

/** The value of a field; a client may be set up to return buffers in place of texts. */
function valueOf(fields: readonly unknown[], name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && String(field) === name);
  return at < 0 ? undefined : String(fields[at + 1]);
}

/** An entry that is neither a mark nor a change comes out as one that the follower reports and skips. */
function changeOf(fields: readonly unknown[]): Change {
  // As most writers write it: a log can have a million of them.
  const isUsual = fields[0] === 'client_id' && fields[2] === 'generation';
  if (isUsual) return [fields[1], parseGeneration(fields[3])] as unknown as Change;
  return [valueOf(fields, 'client_id'), parseGeneration(valueOf(fields, 'generation'))] as unknown as Change;
}

/** The mark in the fields of an entry; `undefined` for any other entry. */
export function markOf(fields: readonly unknown[]): Mark | undefined {
  const epoch = valueOf(fields, 'epoch');
  if (epoch === undefined) return undefined;
  const values = ['unit', 'complete_ms', 'kept_ms'].map((name) => valueOf(fields, name));
  const [unit, completeMs, keptMs] = values.map(parseGeneration);
  if (unit === undefined || completeMs === undefined || keptMs === undefined) return undefined;
  return { epoch, unit, completeMs, keptMs };
}

/** An id, `<ms>-<number>`, in a form that sorts as ids do. */
function sortable(id: unknown): string {
  return String(id).replace(/\d+/g, (digits) => digits.padStart(20, '0'));
}
