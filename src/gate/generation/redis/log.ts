import { dependencies, option, readOptions } from '../../core/options';
import type { Dependencies, TableOf } from '../../core/options';
import { isGeneration, requireChange } from '../generation';
import { requireFormat, SourceError } from '../log';
import type { Batch, Change, GenerationLog, LogReader, Mark, Unit } from '../log';
import { loadPackage, readStoreUrl } from '../source-url';
import type { SourceDependencies } from '../source-url';
import { connectToRedis, redisConnection, redisSession } from './connection';
import type { RedisClient, RedisConnection } from './connection';

/** Options of `redisGenerations()`. */
export interface RedisGenerationsOptions extends Pick<Dependencies, 'clock' | 'schedule' | 'logger'> {
  /**
   * A client of ioredis or of redis (node-redis), 5 or 6: of one server, of Redis Sentinel or of a cluster. To read, a replica is
   * enough. The caller closes it; each reader opens a connection of its own by `duplicate()`.
   */
  readonly client: RedisClient;
  /** Name of the stream; issuers that share a server need one each. Default `tillgate:generations`. */
  readonly key?: string | undefined;
  /** Longest time for one command, in ms; reads may block for longer. Default 5000. */
  readonly timeoutMs?: number | undefined;
  /** Whether a publisher keeps a mark in the stream. `false` where other programs only append to it. Default `true`. */
  readonly mark?: boolean | undefined;
}

const REDIS_OPTIONS = {
  key: option.string('tillgate:generations'),
  timeoutMs: option.number({ unit: 'ms', min: 1, max: 600_000 }, 5_000),
  mark: option.boolean(true),
  ...dependencies('clock', 'schedule', 'logger'),
} satisfies TableOf<Omit<RedisGenerationsOptions, 'client'>>;

/**
 * A log in one stream of Redis (6.2 or later). Any program appends a change with one command:
 * `XADD <key> '*' client_id <client id> generation <generation>`.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { redisGenerations } from 'tillgate/generations';
 *
 * const generationSource = redisGenerations({ client: new Redis('rediss://redis.example.com') });
 * ```
 */
export function redisGenerations(options: RedisGenerationsOptions): GenerationLog {
  // The caller closes the client.
  return openLog(options, () => ({ ...redisConnection(options.client), close: () => undefined }));
}

/**
 * Makes the source for a `redis://` or, with TLS, `rediss://` URL: `rediss://user:password@host:6379/0?key=name`, where
 * `key` names the stream and `mark=off` says that no publisher keeps a mark. Connects by redis (node-redis) or else by
 * ioredis, whichever is installed.
 *
 * @throws TypeError when the URL is wrong or neither is installed; the message does not repeat the URL.
 */
export function sourceFromUrl(url: string, dependencies: SourceDependencies): GenerationLog {
  const { clock, schedule, logger, load = loadPackage } = dependencies;
  const { place, mark } = readStoreUrl(url, 'redis', 'key');
  // Our own limit ends a command, and says what the connection has reported.
  const nodeRedis = { commandOptions: { timeout: 0 } };
  const purpose = { name: 'tillgate', needs: 'generations: a redis: URL needs', load, nodeRedis };
  return openLog({ key: place || undefined, mark, clock, schedule, logger }, () => connectToRedis(url, purpose));
}

function openLog(options: Omit<RedisGenerationsOptions, 'client'>, connect: () => RedisConnection): GenerationLog {
  const given = readOptions('redisGenerations', options, REDIS_OPTIONS, { alsoKnown: ['client'] });
  const { key, timeoutMs, mark, clock, schedule, logger } = given;
  const connection = connect();
  const limits = { key, timeoutMs, schedule };
  const readers = new Set<LogReader>();
  const writer = redisSession(connection, limits);
  let isPolicyKnown = false;

  /** A server that evicts keys can drop the log; not every user may ask for it. */
  async function warnOfEviction(): Promise<void> {
    if (isPolicyKnown) return;
    isPolicyKnown = true;
    const reply = await writer.run(['INFO', 'memory']).catch(() => undefined);
    const policy = /^maxmemory_policy:([a-z-]+)/m.exec(String(reply))?.[1] ?? 'noeviction';
    if (policy === 'noeviction') return;
    logger.warn(
      { key, policy },
      'Redis may evict generations when its memory is full: set maxmemory-policy to noeviction',
    );
  }

  async function appendUnit(changes: readonly Change[], { expected, mark: next }: Unit): Promise<Mark | undefined> {
    const marks = [expected?.epoch ?? '', expected?.unit ?? '', next.epoch, next.unit, next.completeMs, next.keptMs];
    const values = [...marks, ...changes.flat()].map(String);
    const reply = await writer.run(['EVAL', APPEND_UNIT, '1', key, ...values]);
    if (!Array.isArray(reply)) throw new SourceError('Redis: EVAL: the reply is not the fields of a mark');
    return reply.length === 0 ? undefined : markOf(reply);
  }

  return {
    mark,
    reader() {
      warnOfEviction().catch(() => undefined);
      const reader: LogReader = redisReader(redisSession(connection.duplicate(), limits), key, () =>
        readers.delete(reader),
      );
      readers.add(reader);
      return reader;
    },
    async append(changes, unit) {
      for (const change of changes) requireChange(change, clock());
      warnOfEviction().catch(() => undefined);
      // Sent one after the other on one connection, which keeps their order.
      const adds = changes.map(([id, generation]) => ['client_id', id, 'generation', String(generation)]);
      if (!unit) await Promise.all(adds.map((fields) => writer.run(['XADD', key, '*', ...fields])));
      return unit && appendUnit(changes, unit);
    },
    close() {
      for (const reader of readers) reader.close();
      writer.close();
      return Promise.resolve();
    },
  };
}

/** Entries per command: some 10 ms of work. */
const PAGE = 2_000;
/** The mark is written every second, so that it is among the last entries, except after many changes by others. */
const TAIL = 100;
/** Before the oldest entry. */
const START = '0-0';

/** An entry of the stream: its id, then names and values in turn. */
type Entry = readonly [id: unknown, fields: readonly unknown[]];

/** Reads the stream from its oldest entry on. @param session - of this reader alone, because it blocks */
function redisReader(session: ReturnType<typeof redisSession>, key: string, onClose: () => unknown): LogReader {
  let position = START;
  /** Of the mark that was in the log before it was read from its start; positions belong to it. */
  let epoch: string | undefined;
  let isEpochKnown = false;

  /** The last entries, the newest first. */
  async function tail(count: number): Promise<readonly Entry[]> {
    return entriesOf(await session.run(['XREVRANGE', key, '+', '-', 'COUNT', String(count)]));
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
      const entries = streamOf(await session.run(command, waitMs));
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
      session.close();
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

/** The mark in the fields of an entry; `undefined` for any other entry. @throws SourceError for a later format */
function markOf(fields: readonly unknown[]): Mark | undefined {
  const epoch = valueOf(fields, 'epoch');
  if (epoch === undefined) return undefined;
  requireFormat(valueOf(fields, 'format'));
  const values = ['unit', 'complete_ms', 'kept_ms'].map((name) => valueOf(fields, name));
  const [unit, completeMs, keptMs] = values.map(parseGeneration);
  if (unit === undefined || completeMs === undefined || keptMs === undefined) return undefined;
  return { epoch, unit, completeMs, keptMs };
}

/** Reads a generation from decimal digits: stores return it as text, because a double would lose digits silently. */
function parseGeneration(text: unknown): number | undefined {
  const number = typeof text === 'string' && /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined;
  return isGeneration(number) ? number : undefined;
}

/** An id, `<ms>-<number>`, in a form that sorts as ids do. */
function sortable(id: unknown): string {
  return String(id).replace(/\d+/g, (digits) => digits.padStart(20, '0'));
}

/**
 * Compares the mark, appends and replaces the mark, in one atomic step. Returns the fields of the mark that the log has then.
 *
 * The mark is an entry, so that readers find it behind the changes that it covers. The consumer group `mark` points at
 * it, because it can be followed by any number of changes that other programs append; nothing reads through the group. Both are a part of the one
 * key: they are wiped, restored and replicated together.
 *
 * ARGV: epoch and unit of the expected mark, or empty; epoch, unit, complete_ms and kept_ms of the next one; client id and
 * generation of each change.
 */
const APPEND_UNIT = `
local key, pointer, found = KEYS[1], nil, {}
if redis.call('EXISTS', key) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    local info = {}
    for i = 1, #group, 2 do info[group[i]] = group[i + 1] end
    if info.name == 'mark' then pointer = info['last-delivered-id'] end
  end
end
local entry = pointer and redis.call('XRANGE', key, pointer, pointer)[1]
if entry then found = entry[2] end
local mark = {}
for i = 1, #found, 2 do mark[found[i]] = found[i + 1] end
if (mark.epoch or '') ~= ARGV[1] or (mark.unit or '') ~= ARGV[2] then
  return found
end
for i = 7, #ARGV, 2 do redis.call('XADD', key, '*', 'client_id', ARGV[i], 'generation', ARGV[i + 1]) end
local next = {'epoch', ARGV[3], 'unit', ARGV[4], 'complete_ms', ARGV[5], 'kept_ms', ARGV[6]}
local id = redis.call('XADD', key, '*', unpack(next))
redis.call('XGROUP', pointer and 'SETID' or 'CREATE', key, 'mark', id)
if entry then redis.call('XDEL', key, pointer) end
-- By the earlier one of two clocks: the one that is ahead must not trim what is still needed.
local oldest = math.min(redis.call('TIME')[1] * 1000, tonumber(ARGV[5])) - tonumber(ARGV[6])
if oldest > 0 then redis.call('XTRIM', key, 'MINID', '~', string.format('%.0f', oldest)) end
return next
`;
