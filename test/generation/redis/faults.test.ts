import { START } from '../fixtures';
import { open } from './scene';

describe('a subscription', () => {
  it.each(['close', 'end', 'reconnecting', 'error'])('is lost with the event %s, and closed', async (event) => {
    const { watch } = open();
    const { lost, subscriber, wake } = await watch();
    subscriber.emit(event, new Error('gone'));
    subscriber.emit(event, new Error('gone'));
    expect(lost).toHaveBeenCalledTimes(1);
    expect(String(lost.mock.calls)).toBe('SourceError: Redis: the subscription was cut: Error');
    expect(subscriber.status).toBe('end');
    subscriber.emit('message', 'tillgate:generations', 'pos');
    expect(wake).not.toHaveBeenCalled();
  });

  it('is lost when the connection of the commands breaks: they may now reach another server', async () => {
    const { watch, client, redis, source } = open();
    const { lost, nowMs } = await watch();
    client.cut();
    expect(lost).toHaveBeenCalledTimes(1);
    redis.take();
    await source.read(nowMs);
    expect(redis.take()).toBe('ROLE ZSCAN ZMSCORE ZCOUNT');
  });

  it('is lost when the server does not respond on it for a second; the read goes on with the whole set', async () => {
    const { watch, redis, source, time } = open();
    const { lost, subscriber, nowMs } = await watch();
    subscriber.halfOpen = true;
    redis.write('pos', START);
    const reading = source.read(nowMs);
    await time.advance(999);
    expect(lost).not.toHaveBeenCalled();
    await time.advance(1);
    expect([...new Map((await reading).floors)]).toEqual([['pos', START]]);
    expect(String(lost.mock.calls)).toBe('SourceError: Redis: PING: no response within 1000 ms');
  });

  it('that is cut while a read asks it does not count: the read goes on with the whole set', async () => {
    const { watch, redis, source } = open();
    const { subscriber, nowMs } = await watch();
    redis.write('pos', START);
    redis.whenAsked = (command) => {
      if (command === 'PING') queueMicrotask(() => subscriber.cut());
    };
    expect([...new Map((await source.read(nowMs)).floors)]).toEqual([['pos', START]]);
  });

  it('that breaks while it is being established is not lost but refused', async () => {
    const { source, redis } = open();
    const lost = jest.fn();
    redis.whenAsked = () => queueMicrotask(() => redis.clients[1]?.emit('close'));
    await expect(source.watch(() => undefined, lost)).rejects.toThrow('Redis: SUBSCRIBE: closed');
    expect([lost.mock.calls, redis.clients[1]?.status]).toEqual([[], 'end']);
  });

  it('needs no listener for its loss', async () => {
    const { source, redis } = open();
    await source.watch(() => undefined);
    expect(() => redis.clients[1]?.emit('close')).not.toThrow();
  });

  it('takes no message of another channel', async () => {
    const { watch } = open();
    const { wake, subscriber } = await watch();
    subscriber.emit('message', 'another', 'pos');
    expect(wake).not.toHaveBeenCalled();
  });

  it('is not lost when it is stopped, and its connection is closed', async () => {
    const { watch } = open();
    const { lost, stop, subscriber } = await watch();
    const ended = jest.fn();
    subscriber.on('end', ended);
    stop();
    stop();
    expect(ended).toHaveBeenCalledTimes(1);
    expect(subscriber.status).toBe('end');
    expect(lost).not.toHaveBeenCalled();
  });

  it('rejects when it is refused or gets no response, and leaves no connection open', async () => {
    const { source, redis, time } = open();
    redis.refused.set('PING', new Error('NOPERM this user has no permissions'));
    await expect(source.watch(() => undefined)).rejects.toThrow(/^Redis: SUBSCRIBE: the user lacks a permission/);
    redis.refused.clear();
    redis.silent.add('PING');
    const watching = source.watch(() => undefined);
    const refused = expect(watching).rejects.toThrow('Redis: SUBSCRIBE: no response within 5000 ms');
    await time.advance(5_000);
    await refused;
    expect(redis.clients.slice(1).map(({ status }) => status)).toEqual(['end', 'end']);
  });
});

describe('a command', () => {
  it('that gets no response makes the source open another one', async () => {
    const { source, client, redis, time } = open();
    const lost = jest.fn();
    client.halfOpen = true;
    const failing = expect(source.publish('pos', START)).rejects.toThrow('no response within 5000 ms');
    await source.watch(() => undefined, lost);
    await time.advance(5_000);
    await failing;
    expect(String(lost.mock.calls)).toBe('SourceError: Redis: the connection broke: no response');
    // What becomes of the old connection says nothing about the new one.
    const other = jest.fn();
    const stop = await source.watch(() => undefined, other);
    client.emit('error', new Error('late'));
    expect(other).not.toHaveBeenCalled();
    stop();
    await source.publish('pos', START + 1);
    expect([...(await source.read(0)).floors]).toEqual([['pos', START + 1]]);
    // Somebody else's client is left alone; our own is closed.
    expect(client.status).toBe('ready');
    redis.silent.add('ROLE');
    const again = source.read(0);
    await time.advance(5_000);
    await again;
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'end', 'end', 'end', 'ready']);
    await source.close();
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'end', 'end', 'end', 'end']);
  });

  it('that gets no response says what the connection died of', async () => {
    const { source, client, redis, time } = open();
    redis.silent.add('ZADD').add('PUBLISH');
    client.emit('error', Object.assign(new Error('connect redis://pos:hunter2@db'), { code: 'ECONNREFUSED' }));
    client.emit('close');
    const failing = expect(source.publish('pos', START)).rejects.toThrow(
      'Redis: ZADD: no response within 5000 ms; the connection failed: Error (ECONNREFUSED)',
    );
    await time.advance(5_000);
    await failing;
  });

  it.each([
    ['WRONGTYPE Operation against a key', /^Redis: ZSCAN: the key holds .* \(WRONGTYPE\)$/],
    ['NOAUTH Authentication required.', /needs a password \(NOAUTH\)$/],
    ["ERR unknown command 'ZSCAN' pos:hunter2", /Redis 6\.2 or later is needed \(ERR\)$/],
    ['connect to redis://pos:hunter2@db', /^Redis: ZSCAN: Error$/],
    ['CONSTRUCTOR hunter2', /^Redis: ZSCAN: Error$/],
    ['the user hunter2 has NOPERM', /^Redis: ZSCAN: Error$/],
  ])('that is refused with %j is explained without the words of the server', async (message, expected) => {
    const { source, redis } = open();
    redis.refused.set('ZSCAN', new Error(message));
    const error: unknown = await source.read(0).catch((reason: unknown) => reason);
    expect((error as Error).message).toMatch(expected);
    expect((error as Error).cause).toMatchObject({ message });
    // Only a connection that is silent is replaced.
    expect(redis.clients).toHaveLength(1);
  });

  it('is not waited for longer than until the connection says that it is closed', async () => {
    const { source, client, watch } = open();
    const { lost } = await watch();
    client.emit('close');
    client.emit('end', null);
    expect(String(lost.mock.calls)).toBe('SourceError: Redis: disconnected');
    client.status = 'end';
    await expect(source.read(0)).rejects.toThrow('Redis: ZSCAN: Error');
  });

  it('reaches Redis as any program can send it', async () => {
    const { source, redis } = open();
    const sent: unknown[] = [];
    const reply = redis.reply.bind(redis);
    redis.reply = (command, args) => (sent.push([command, ...args]), reply(command, args));
    await source.publish('pos', 5);
    await source.sentinel?.write(6);
    await source.sentinel?.read();
    await source.read(0);
    const key = 'tillgate:generations';
    expect(sent).toEqual([
      ['ZADD', key, 'GT', '5', 'pos'],
      ['PUBLISH', key, 'pos'],
      ['ZADD', key, 'GT', '6', ''],
      ['ZMSCORE', key, '', '\0horizon'],
      ['ROLE'],
      ['ZSCAN', key, '0', 'COUNT', '1000'],
      ['ZMSCORE', key, '', '\0horizon'],
      ['ZCOUNT', key, '-inf', '+inf'],
    ]);
  });
});
