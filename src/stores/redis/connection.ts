import type * as Ioredis from 'ioredis';
import type * as NodeRedis from 'redis';
import { describeFailure, noResponse, SourceError, type Schedule } from 'tillgate/generations';
import { describe, loadPeer, withTimeLimit } from 'tillgate/internal';
import { readStoreUrl, type loadPackage } from '../store-url';

/** The part of a client of ioredis that is used; `Redis` and `Cluster` of ioredis 5 and 6 fit. */
export interface IoredisClient {
  readonly status: string;
  readonly isCluster: boolean;
  call(command: string, ...args: string[]): Promise<unknown>;
  duplicate(...overrides: never[]): IoredisClient;
  disconnect(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

/**
 * The part of a client of node-redis that is used; what `createClient()`, `createCluster()` and `createSentinel()` of
 * redis 5 and 6 return fits.
 */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  sendCommand(...args: never[]): Promise<unknown>;
  duplicate(): NodeRedisClient;
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** A client of ioredis or of node-redis. */
export type RedisClient = IoredisClient | NodeRedisClient;

/** A connection, made by either client: to one server, or to those of a cluster. */
export interface RedisConnection {
  /** `key` tells which server of a cluster has to run the command; most commands have it as their first argument. */
  send(args: readonly string[], key?: string): Promise<unknown>;
  /** Whether it is one to several servers, each of which has a part of the keys. */
  readonly isCluster: boolean;
  /** Calls `listener` with every failure of the connection; the client reconnects by itself. */
  onError(listener: (error: unknown) => void): void;
  /** Opens another connection to the same servers, on which commands may block; commands wait until it is open. */
  duplicate(): RedisConnection;
  close(): void;
}

/** Commands that a replica runs too, where a client of node-redis is set up to use replicas. */
const READS: ReadonlySet<string | undefined> = new Set(['HMGET', 'XREAD', 'XREVRANGE']);

/**
 * Recognizes a client by its shape.
 *
 * @param factory - what the client was given to, for the message
 * @throws TypeError when it is neither of ioredis nor of node-redis
 */
export function redisConnection(client: RedisClient, factory = 'redisGenerations'): RedisConnection {
  const shape = ((client as RedisClient | undefined) ?? {}) as Record<string, unknown>;
  if (typeof shape['call'] === 'function' && 'status' in shape) return ofIoredis(client as IoredisClient);
  if (typeof shape['sendCommand'] === 'function' && 'isOpen' in shape) return ofNodeRedis(client as NodeRedisClient);
  const expected = 'a client of ioredis or of redis (node-redis)';
  throw new TypeError(`${factory}(): option "client" must be ${expected}, got ${describe(client)}`);
}

function ofIoredis(client: IoredisClient): RedisConnection {
  return {
    send: ([command = '', ...args]) => client.call(command, ...args),
    isCluster: client.isCluster,
    onError: (listener) => void client.on('error', listener),
    duplicate() {
      // A blocking command is silent for longer than others; its time is limited by the caller.
      const patient = { commandTimeout: undefined, socketTimeout: undefined };
      const { redisOptions } = (client as { options?: { redisOptions?: object } }).options ?? {};
      const overrides = client.isCluster ? [[], { redisOptions: { ...redisOptions, ...patient } }] : [patient];
      return withErrorListener(client.duplicate(...(overrides as never[])));
    },
    close: () => client.disconnect(),
  };
}

function ofNodeRedis(client: NodeRedisClient): RedisConnection {
  const isCluster = 'getSlotMaster' in client;
  const isSentinel = 'getSentinelNode' in client;
  return {
    send(args, key = args[1]) {
      const routing = isCluster ? [key, READS.has(args[0])] : isSentinel ? [READS.has(args[0])] : [];
      return client.sendCommand(...([...routing, [...args]] as never[]));
    },
    isCluster,
    onError: (listener) => void client.on('error', listener),
    duplicate() {
      const copy = client.duplicate();
      const connection = withErrorListener(copy);
      let opening: Promise<unknown> | undefined;
      // A client of several servers neither keeps commands until it is open nor tries again.
      const open = (): Promise<unknown> =>
        (opening ??= copy.connect().catch((error: unknown) => {
          opening = undefined;
          throw error;
        }));
      open().catch(() => undefined);
      return { ...connection, send: (args, key) => open().then(() => connection.send(args, key)) };
    },
    close() {
      // A sentinel client ends later; one that is closed already throws.
      new Promise((resolve) => resolve(client.destroy())).catch(() => undefined);
    },
  };
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Connects to a `redis://` or `rediss://` URL by redis (node-redis) or ioredis, whichever is installed, and reconnects
 * when the connection is lost. If both are, by redis: it parses large replies faster than ioredis 6.
 *
 * @throws TypeError when neither is installed in a version that works; the message does not repeat the URL, which may
 *   hold a password
 */
export function connectToRedis(
  url: string,
  purpose: {
    /** Name of the connection in CLIENT LIST. */
    readonly name: string;
    /** Start of the message if no client is installed. */
    readonly needs: string;
    readonly load: typeof loadPackage;
    /** Further options of the two clients, each in its own words. */
    readonly ioredis?: object;
    readonly nodeRedis?: object;
  },
): RedisConnection {
  const { name, needs, load } = purpose;
  const store = readStoreUrl(url, 'redis', 'key');
  const nodeRedis = loadPeer<typeof NodeRedis>('redis', load);
  if (nodeRedis.module) {
    const socket = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    const client = nodeRedis.module.createClient({ url: store.url, socket, name, ...purpose.nodeRedis });
    const connection = withErrorListener(client);
    client.connect().catch(() => undefined);
    return connection;
  }
  const ioredis = loadPeer<typeof Ioredis>('ioredis', load);
  if (ioredis.module) {
    const options = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: KEEP_ALIVE_MS, connectionName: name };
    // RESP2: ioredis 6 parses its flat lists of texts in half of the time of RESP3's pairs. ioredis 5 ignores it.
    return withErrorListener(new ioredis.module.Redis(store.url, { ...options, ...purpose.ioredis, protocol: 2 }));
  }
  const problems = `${nodeRedis.problem}; ${ioredis.problem}`;
  throw new TypeError(`${needs} the package redis or ioredis (${problems}): npm install redis@6`);
}

/** Without a listener, a lost connection would end the process; commands report the failure. */
function withErrorListener(client: RedisClient): RedisConnection {
  client.on('error', () => undefined);
  return redisConnection(client);
}

/** Sends commands on the key of a log, each in `timeoutMs`; every failure is a `SourceError`. */
export function redisSession(
  first: RedisConnection,
  { key, timeoutMs, schedule }: { readonly key: string; readonly timeoutMs: number; readonly schedule: Schedule },
): { run(args: readonly string[], waitMs?: number): Promise<unknown>; close(): void } {
  /** The last failure that the client has reported. */
  let cause: unknown;
  let closed = false;
  let connection = listen(first);
  const timeoutError = (): SourceError => noResponse(timeoutMs);

  function listen(opened: RedisConnection): RedisConnection {
    opened.onError((error) => (cause = error));
    return opened;
  }

  return {
    /** @param waitMs - how long the server may block, in ms */
    async run(args, waitMs = 0) {
      if (closed) throw new SourceError('Redis: closed');
      const used = connection;
      try {
        const sent = (async () => used.send(args, key))();
        const reply = await withTimeLimit(sent, waitMs + timeoutMs, schedule, timeoutError);
        cause = undefined;
        return reply;
      } catch (error) {
        if (closed) throw new SourceError('Redis: closed', { cause: error });
        // The commands that were pending when another one timed out end with the connection.
        const isSilent = error instanceof SourceError || used !== connection;
        const failure = redisFailure(args[0], isSilent ? timeoutError() : error, cause);
        // It can be dead without an error: packets are lost, and TCP may take a quarter of an hour to notice.
        if (isSilent && used === connection) {
          connection = listen(used.duplicate());
          used.close();
        }
        throw failure;
      }
    },
    close() {
      if (!closed) connection.close();
      closed = true;
    },
  };
}

/** What an operator can do, by the first word of the error reply. */
const ADVICE_BY_ERROR: Readonly<Record<string, string>> = {
  ERR: 'the command was refused; Redis 6.2 or later is needed',
  CLUSTERDOWN: 'the cluster does not serve this key now',
  LOADING: 'the server is loading its data',
  MASTERDOWN: 'the server is a replica without its primary',
  MISCONF: 'the server cannot write to its disk and refuses changes',
  MOVED: 'this is one server of a cluster; give redisGenerations() a cluster client',
  NOAUTH: 'the URL or the client needs a password',
  NOPERM:
    'the user lacks a permission: XREAD, XREVRANGE and HMGET to read; XADD to append; to keep the mark also EVAL, HSET, XTRIM ' +
    'and TIME; the mark of the key "name" is the key "{name}:mark"',
  NOREPLICAS: 'the server has too few replicas and refuses changes',
  OOM: 'the server has no memory left',
  READONLY: 'this server is a replica; use the URL of the primary',
  UNBLOCKED: 'the server has become a replica',
  WRONGPASS: 'user name or password is wrong',
  WRONGTYPE: 'the key does not hold a stream: delete it, and its publisher writes the log, or use another key',
};

/** Describes the failure of a command; `cause` is the error of its connection, if known. */
function redisFailure(command: string | undefined, error: unknown, cause?: unknown): SourceError {
  const because = cause === undefined ? '' : `; the connection failed: ${reasonOf(cause) ?? describeFailure(cause)}`;
  const detail = reasonOf(error) ?? `${describeFailure(error)}${because}`;
  return new SourceError(`Redis: ${command}: ${detail}`, { cause: error });
}

/** What a reply of Redis means; `undefined` for any other error. */
function reasonOf(error: unknown): string | undefined {
  // Redis 6.2 wraps the error of a command in a script: `ERR Error running script [...]: -READONLY You can't write`.
  const words = error instanceof Error ? /^(?:ERR .* -)?([A-Z]{3,20})\b/.exec(error.message) : undefined;
  const word = words?.[1] ?? '';
  return Object.hasOwn(ADVICE_BY_ERROR, word) ? `${ADVICE_BY_ERROR[word]} (${word})` : undefined;
}
