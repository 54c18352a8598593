import type { Dependencies } from 'tillgate';
import { isGeneration, readersOf, requireChange, requireFormat, SourceError } from 'tillgate/generations';
import type { Batch, Change, GenerationLog, LogReader, Mark, Unit, Wait } from 'tillgate/generations';
import { dependencies, option, readOptions, type TableOf } from 'tillgate/internal';
import { loadPackage, readStoreUrl, type StoreDependencies } from '../store-url';
import { connectToRedis, redisConnection, redisSession, type RedisClient, type RedisConnection } from './connection';

/** Options of `redisGenerations()`. */
export interface RedisGenerationsOptions extends Pick<Dependencies, 'clock' | 'schedule'> {
  /**
   * A client of ioredis or of redis (node-redis), 5 or 6: of one server, of Redis Sentinel or of a cluster. To read, a replica is
   * enough. The caller closes it; each reader opens a connection of its own by `duplicate()`.
   */
  readonly client: RedisClient;
  /** Name of the stream; issuers that share a server need one each. Default `tillgate:generations`. */
  readonly key?: string | undefined;
  /** Longest time for one command, in ms; reads may block for longer. Default 5000. */
  readonly timeoutMs?: number | undefined;
  /** Whether a publisher keeps a mark beside the stream. `false` where other programs only append to it. Default `true`. */
  readonly mark?: boolean | undefined;
}

const REDIS_OPTIONS = {
  key: option.string('tillgate:generations'),
  timeoutMs: option.number({ unit: 'milliseconds', min: 1, max: 600_000 }, 5_000),
  mark: option.boolean(true),
  ...dependencies('clock', 'schedule'),
} satisfies TableOf<Omit<RedisGenerationsOptions, 'client'>>;

/**
 * A log in one stream of Redis (6.2 or later). Any program appends a change with one command:
 * `XADD <key> '*' client_id <client id> generation <generation>`.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { redisGenerations } from '@tillgate/stores';
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
export function redisFromUrl(url: string, dependencies: StoreDependencies): GenerationLog {
  const { clock, schedule, load = loadPackage } = dependencies;
  const { place, mark } = readStoreUrl(url, 'redis', 'key');
  // Our own limit ends a command, and says what the connection has reported.
  const nodeRedis = { commandOptions: { timeout: 0 } };
  const purpose = { name: 'tillgate', needs: 'generations: a redis: URL needs', load, nodeRedis };
  return openLog({ key: place || undefined, mark, clock, schedule }, () => connectToRedis(url, purpose));
}

function openLog(options: Omit<RedisGenerationsOptions, 'client'>, connect: () => RedisConnection): GenerationLog {
  const given = readOptions('redisGenerations', options, REDIS_OPTIONS, { alsoKnown: ['client'] });
  const { key, timeoutMs, mark, clock, schedule } = given;
  const connection = connect();
  const limits = { key, timeoutMs, schedule };
  const markKey = markKeyOf(key);
  const writer = redisSession(connection, limits);

  async function appendUnit(changes: readonly Change[], { expected, mark: next }: Unit): Promise<Mark | undefined> {
    const marks = [expected?.epoch ?? '', expected?.unit ?? '', next.epoch, next.unit, next.completeMs, next.keptMs];
    const values = [...marks, clock(), ...changes.flat()].map(String);
    return markOf(await writer.run(['EVAL', APPEND_UNIT, '2', key, markKey, ...values]))?.mark;
  }

  const readers = readersOf(schedule, ({ pause }) => {
    return new RedisReader(redisSession(connection.duplicate(), limits), key, mark ? markKey : undefined, pause);
  });

  return {
    mark,
    reader: readers.reader,
    async append(changes, unit) {
      for (const change of changes) requireChange(change, clock());
      // Sent one after the other on one connection, which keeps their order.
      const adds = changes.map(([id, generation]) => ['client_id', id, 'generation', String(generation)]);
      if (!unit) await Promise.all(adds.map((fields) => writer.run(['XADD', key, '*', ...fields])));
      return unit && appendUnit(changes, unit);
    },
    close() {
      readers.close();
      writer.close();
      return Promise.resolve();
    },
  };
}

/** Entries per command: some 10 ms of work. */
const PAGE = 2_000;
/** Before the oldest entry. */
const START = '0-0';

/** An entry of the stream: its id, then names and values in turn. */
type Entry = readonly [id: unknown, fields: readonly unknown[]];

/**
 * The key of the mark: beside the stream, because a search for it must not depend on what others append; with the same hash tag, so
 * that a cluster has both on one server.
 */
function markKeyOf(key: string): string {
  return /\{[^}]+\}/.test(key) ? `${key}:mark` : `{${key}}:mark`;
}

/** Reads the stream from its oldest entry on. */
class RedisReader implements LogReader {
  /** Of this reader alone, because it blocks. */
  readonly #session: ReturnType<typeof redisSession>;
  readonly #key: string;
  /** Absent where no publisher keeps a mark. */
  readonly #markKey: string | undefined;
  readonly #pause: Wait['pause'];
  #position = START;
  /** The mark when the log was last read from its start: positions belong to its epoch. */
  #first: Mark | undefined;
  /** Whether the end was reached since then. */
  #isComplete = false;

  constructor(
    session: ReturnType<typeof redisSession>,
    key: string,
    markKey: string | undefined,
    pause: Wait['pause'],
  ) {
    this.#session = session;
    this.#key = key;
    this.#markKey = markKey;
    this.#pause = pause;
  }

  async next(waitMs: number): Promise<Batch> {
    // Before the stream: what it covers is read then, or the stream that is read ends before it.
    let found = await this.#readMark();
    let blockMs = waitMs;
    if (this.#isComplete && !this.#continues(found)) {
      // Another epoch, for every process in the same second: they start again at different times.
      if (waitMs > 0) await this.#pause(Math.random() * waitMs);
      this.#startAgain();
      found = await this.#readMark();
      blockMs = 0;
    }
    if (this.#position === START) this.#first = found?.mark;
    // BLOCK 0 would be for ever.
    const block = blockMs > 0 ? ['BLOCK', String(Math.ceil(blockMs))] : [];
    const command = ['XREAD', 'COUNT', String(PAGE), ...block, 'STREAMS', this.#key, this.#position];
    const entries = streamOf(await this.#session.run(command, blockMs));
    const last = entries.at(-1);
    if (!last && !(await this.#isStillThere())) {
      this.#startAgain();
      return { changes: [], end: false };
    }
    if (last) this.#position = String(last[0]);
    const end = entries.length < PAGE;
    this.#isComplete ||= end;
    const isCovered = found && found.mark.epoch === this.#first?.epoch && !isBefore(this.#position, found.last);
    if (isCovered) this.#first = found?.mark;
    const changes = entries.map(([, fields]) => changeOf(fields));
    return { changes, end, ...(end && isCovered && { mark: found?.mark }) };
  }

  close(): void {
    this.#session.close();
  }

  async #readMark(): Promise<RedisMark | undefined> {
    if (this.#markKey === undefined) return undefined;
    return markOf(await this.#session.run(['HMGET', this.#markKey, ...MARK_FIELDS]));
  }

  /** Whether a mark follows the first one, in the same epoch. */
  #continues(found: RedisMark | undefined): boolean {
    return found?.mark.epoch === this.#first?.epoch && (found?.mark.unit ?? 0) >= (this.#first?.unit ?? 0);
  }

  #startAgain(): void {
    this.#position = START;
    this.#isComplete = false;
  }

  /** Whether the log still reaches the position: it can have been wiped, or have gone back. */
  async #isStillThere(): Promise<boolean> {
    if (this.#position === START) return true;
    const [last] = entriesOf(await this.#session.run(['XREVRANGE', this.#key, '+', '-', 'COUNT', '1']));
    return last !== undefined && !isBefore(last[0], this.#position);
  }
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
function fieldOf(fields: readonly unknown[], name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && String(field) === name);
  return at < 0 ? undefined : String(fields[at + 1]);
}

/** An entry that is not a change comes out as one that the follower reports and skips. */
function changeOf(fields: readonly unknown[]): Change {
  // As most writers write it: a log can have a million of them.
  const isUsual = fields[0] === 'client_id' && fields[2] === 'generation';
  if (isUsual) return [fields[1], parseGeneration(fields[3])] as unknown as Change;
  return [fieldOf(fields, 'client_id'), parseGeneration(fieldOf(fields, 'generation'))] as unknown as Change;
}

/** A mark as it is stored. */
interface RedisMark {
  readonly mark: Mark;
  /** Id of the last entry when it was written: a stream that ends before that has lost what the mark covers, or lags. */
  readonly last: string;
}

const MARK_FIELDS = ['epoch', 'unit', 'complete_ms', 'kept_ms', 'last', 'format'];

/** The mark in the values of its fields. @throws SourceError when it is not one, or in a later format */
function markOf(reply: unknown): RedisMark | undefined {
  if (!Array.isArray(reply)) throw new SourceError('Redis: the reply is not the fields of a mark');
  const [epoch, unitText, completeText, keptText, last, format] = (reply as unknown[]).map((value) =>
    typeof value === 'string' || typeof value === 'number' ? String(value) : undefined,
  );
  if (epoch === undefined) return undefined;
  requireFormat(format);
  const [unit, completeMs, keptMs] = [unitText, completeText, keptText].map(parseGeneration);
  if (unit === undefined || completeMs === undefined || keptMs === undefined || last === undefined) {
    throw new SourceError('Redis: the reply is not the fields of a mark');
  }
  return { mark: { epoch, unit, completeMs, keptMs }, last };
}

/** Reads a generation from decimal digits: stores return it as text, because a double would lose digits silently. */
function parseGeneration(text: unknown): number | undefined {
  const number = typeof text === 'string' && /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined;
  return isGeneration(number) ? number : undefined;
}

/** Whether an id, `<ms>-<number>`, is lower than another one. */
function isBefore(one: unknown, other: unknown): boolean {
  const [a, b] = [one, other].map((id) => String(id).replace(/\d+/g, (digits) => digits.padStart(20, '0'))) as [
    string,
    string,
  ];
  return a < b;
}

/**
 * Compares the mark, appends and replaces the mark, in one atomic step. Returns the values of MARK_FIELDS that the log has then; none
 * if the stream was deleted, or ends before it did when the mark was written.
 *
 * KEYS: the stream and its mark. ARGV: epoch and unit of the expected mark, or empty; epoch, unit, complete_ms and kept_ms of the
 * next one; the publisher's time; client id and generation of each change.
 */
const APPEND_UNIT = `
local key, markKey = KEYS[1], KEYS[2]
local function lastId()
  local entry = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  return entry and entry[1] or '0-0'
end
local function isBefore(one, other)
  local ms, number = string.match(one, '(%d+)-(%d+)')
  local otherMs, otherNumber = string.match(other, '(%d+)-(%d+)')
  if ms ~= otherMs then return tonumber(ms) < tonumber(otherMs) end
  return tonumber(number) < tonumber(otherNumber)
end
local found = redis.call('HMGET', markKey, 'epoch', 'unit', 'complete_ms', 'kept_ms', 'last', 'format')
if found[5] and isBefore(lastId(), found[5]) then found = {} end
if (found[1] or '') ~= ARGV[1] or (found[2] or '') ~= ARGV[2] then
  return found
end
local time = redis.call('TIME')
local nowMs = time[1] * 1000
-- Stamped by the later one of two clocks, trimmed by the earlier one: the one that is wrong must not trim what is needed.
local id = tonumber(ARGV[7]) > nowMs + 999 and ARGV[7] .. '-0' or '*'
for i = 8, #ARGV, 2 do
  local added = redis.pcall('XADD', key, id, 'client_id', ARGV[i], 'generation', ARGV[i + 1])
  if type(added) == 'table' then redis.call('XADD', key, '*', 'client_id', ARGV[i], 'generation', ARGV[i + 1]) end
  id = '*'
end
local last = lastId()
local oldest = string.format('%.0f-0', math.max(0, math.min(nowMs, tonumber(ARGV[5])) - tonumber(ARGV[6])))
-- Never the last entry, which the mark names.
redis.call('XTRIM', key, 'MINID', '~', isBefore(last, oldest) and last or oldest)
redis.call('HSET', markKey, 'epoch', ARGV[3], 'unit', ARGV[4], 'complete_ms', ARGV[5], 'kept_ms', ARGV[6], 'last', last)
return {ARGV[3], ARGV[4], ARGV[5], ARGV[6], last}
`;
