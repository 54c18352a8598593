import { AuthError } from '../../../src';
import { settle } from '../../support/fake-time';
import { introspectorScene as scene } from '../../support/introspector-scene';
import { CallQueue } from '../../../src/token/introspection/introspector';

const reasonOf = (result: unknown): unknown => (result instanceof AuthError ? result.reason : result);
const many = (count: number, name: string): string[] => Array.from({ length: count }, (_, index) => `${name}${index}`);

describe('introspector(): an active token', () => {
  it('is asked about once within cacheMs, and again after it', async () => {
    const { answers, asked, time, result, get } = scene();
    const claims = { sub: 'a' };
    answers.set('t', claims);
    expect(get('t')).toBeUndefined();
    expect(await result('t')).toBe(claims);
    await time.advance(29_999);
    expect([get('t'), await result('t')]).toEqual([claims, claims]);
    expect(asked).toEqual(['t']);
    await time.advance(1);
    expect(get('t')).toBeUndefined();
    await result('t');
    expect(asked).toEqual(['t', 't']);
  });

  it('counts from the request, not from the response', async () => {
    const { answers, time, get, introspect, hold, release } = scene();
    answers.set('t', {});
    hold();
    const asking = introspect('t');
    await time.advance(4_000);
    release();
    await asking;
    await time.advance(25_999);
    expect(get('t')).toEqual({});
    await time.advance(1);
    expect(get('t')).toBeUndefined();
  });

  it('is asked about again after the clock has stepped back', async () => {
    const { answers, time, get, result } = scene();
    answers.set('t', {});
    await result('t');
    time.step(-1);
    expect(get('t')).toBeUndefined();
  });

  it('is asked about each time with cacheMs 0', async () => {
    const { answers, asked, get, result } = scene(0);
    answers.set('t', {});
    await result('t');
    expect(get('t')).toBeUndefined();
    await result('t');
    expect(asked).toHaveLength(2);
  });

  it('is told from tokens that differ in one character', async () => {
    const { answers, get, result } = scene();
    answers.set('token-a', {});
    await result('token-a');
    expect([get('token-b'), get('token-a '), get('TOKEN-A')]).toEqual([undefined, undefined, undefined]);
    expect(reasonOf(await result('token-b'))).toBe('inactive');
  });

  it('that is inactive later is forgotten immediately', async () => {
    const { answers, asked, time, get, result } = scene();
    answers.set('t', {});
    await result('t');
    answers.delete('t');
    await time.advance(30_000);
    expect(reasonOf(await result('t'))).toBe('inactive');
    expect(get('t')).toBeUndefined();
    expect(reasonOf(await result('t'))).toBe('inactive');
    expect(asked).toHaveLength(2);
    // The time at which it was active is recent again.
    time.step(-10_000);
    expect(get('t')).toBeUndefined();
  });
});

describe('introspector(): what is not active', () => {
  it('is remembered for 5 s, however long active ones are', async () => {
    const { answers, asked, time, result } = scene(300_000);
    await result('t');
    await time.advance(4_999);
    expect(reasonOf(await result('t'))).toBe('inactive');
    expect(asked).toHaveLength(1);
    answers.set('t', {});
    await time.advance(1);
    expect(await result('t')).toEqual({});
  });

  it('never pushes out what is active', async () => {
    const { answers, get, result } = scene();
    answers.set('t', {});
    await result('t');
    for (const token of many(12_000, 'garbage')) await result(token);
    expect(get('t')).toEqual({});
  });

  it('is refused without a call when it is too long to be a token', async () => {
    const { asked, result } = scene();
    expect(reasonOf(await result('x'.repeat(16_384)))).toBe('inactive');
    expect(await result('x'.repeat(16_385))).toMatchObject({
      reason: 'malformed_token',
      privateDetail: 'an opaque token of more than 16384 characters',
    });
    expect(asked).toHaveLength(1);
  });
});

describe('introspector(): calls', () => {
  it('are one per token at a time', async () => {
    const { answers, asked, introspect, hold, release } = scene(0);
    answers.set('t', {});
    hold();
    const asking = many(50, '').map(() => introspect('t'));
    release();
    const results = await Promise.all(asking);
    expect(asked).toEqual(['t']);
    expect(new Set(results).size).toBe(1);
    await introspect('t');
    expect(asked).toHaveLength(2);
  });

  it('are 16 at a time; 256 tokens wait in their order, the others get 503 immediately', async () => {
    const { asked, result, hold, release, log } = scene();
    hold();
    const results = many(300, 'g').map((token) => result(token));
    await settle();
    expect(asked).toHaveLength(16);
    const turnedAway = (await Promise.all(results.slice(272))) as AuthError[];
    expect(turnedAway.map(reasonOf)).toEqual(turnedAway.map(() => 'introspection_unavailable'));
    expect(turnedAway[0]?.retryAfterSeconds).toBe(1);
    release();
    expect((await Promise.all(results.slice(0, 272))).map(reasonOf)).toEqual(many(272, '').map(() => 'inactive'));
    expect(asked).toEqual(many(272, 'g'));
    expect(log.entries).toEqual([]);
  });

  it('have the same share for each address: made-up tokens of one starve no new tokens of others', async () => {
    const { answers, result, hold, release } = scene();
    const good = many(20, 'good');
    for (const token of good) answers.set(token, { sub: token });
    hold();
    const flood = many(400, 'g').map((token) => result(token, '198.51.100.7'));
    await settle();
    const others = good.map((token, index) => result(token, `203.0.113.${index % 4}`));
    flood.push(...many(400, 'h').map((token) => result(token, '198.51.100.7')));
    await settle();
    release();
    expect(await Promise.all(others)).toEqual(good.map((sub) => ({ sub })));
    const reasons = (await Promise.all(flood)).map(reasonOf);
    expect(reasons.filter((reason) => reason === 'inactive')).toHaveLength(16 + 256 - 20);
  });

  it('about a token that was active go before a flood of made-up ones', async () => {
    const { answers, asked, time, result, hold, release } = scene();
    answers.set('t', {});
    await result('t');
    await time.advance(30_000);
    hold();
    const flood = many(400, 'g').map((token) => result(token));
    const known = result('t');
    await settle();
    release();
    expect(await known).toEqual({});
    expect(asked.indexOf('t', 1)).toBe(17);
    await Promise.all(flood);
  });

  it('and the wait for them end after 5 s with 503', async () => {
    const { asked, probes, time, result, hold } = scene();
    hold();
    const results = many(20, 'g').map((token) => result(token));
    await time.advance(4_999);
    expect(asked).toHaveLength(16);
    await time.advance(1);
    const refused = (await Promise.all(results)) as AuthError[];
    expect(new Set(refused.map(reasonOf))).toEqual(new Set(['introspection_unavailable']));
    expect(refused[0]?.privateDetail).toBe('it did not respond within 5000 ms');
    // The others had their turn at the same moment, in which their time was over too.
    expect([asked.length, probes.length]).toEqual([20, 1]);
    await time.advance(5_000);
    expect(time.pending).toBe(0);
  });

  it('leave their places to others when they were given up', async () => {
    const { asked, time, result, hold } = scene();
    hold();
    const given = many(20, 'g').map((token) => result(token));
    await time.advance(5_000);
    await Promise.all(given);
    await time.advance(5_250);
    const later = many(20, 'h').map((token) => result(token));
    await settle();
    expect(asked.slice(20)).toEqual(many(16, 'h'));
    await time.advance(5_000);
    await Promise.all(later);
  });

  it('end when the gate is closed, and start no more', async () => {
    const { asked, result, hold, close, log } = scene();
    hold();
    const asking = result('t');
    await settle();
    close();
    expect(reasonOf(await asking)).toBe('introspection_unavailable');
    expect(reasonOf(await result('u'))).toBe('introspection_unavailable');
    expect([asked, log.entries]).toEqual([['t'], []]);
  });
});

const never = (): AbortSignal => new AbortController().signal;

/** A queue whose places are all taken, and what ends the calls that take them. */
function fullQueue() {
  const queue = new CallQueue();
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  function run(name: string, { signal = never(), isKnown = false, address = '192.0.2.1' } = {}): Promise<void> {
    const call = (): Promise<void> => {
      started.push(name);
      return new Promise((resolve) => ends.set(name, resolve));
    };
    return queue.run(call, { signal, isKnown, address });
  }
  for (let index = 0; index < 16; index++) void run(`r${index}`);
  return { started, run, end: (name: string) => ends.get(name)?.() };
}

describe('CallQueue', () => {
  it('forgets a call whose wait was aborted, and loses no place', async () => {
    const { started, run, end } = fullQueue();
    const waiting = new AbortController();
    const givenUp = run('given up', { signal: waiting.signal }).catch((error: unknown) => error);
    waiting.abort();
    expect(await givenUp).toBeInstanceOf(AuthError);
    end('r0');
    await settle();
    void run('next');
    void run('waits');
    await settle();
    expect(started.slice(16)).toEqual(['next']);
    end('next');
    await settle();
    expect(started.slice(16)).toEqual(['next', 'waits']);
  });

  it('never turns a known one away, and lets it go first', async () => {
    const { started, run, end } = fullQueue();
    const waiting = Array.from({ length: 256 }, (_, index) => run(`w${index}`));
    await expect(run('one too many')).rejects.toMatchObject({ reason: 'introspection_unavailable' });
    void run('known', { isKnown: true });
    end('r0');
    end('r1');
    await settle();
    expect(started.slice(16)).toEqual(['known', 'w0']);
    expect(waiting).toHaveLength(256);
  });

  it('gives a place back when a call fails', async () => {
    const queue = new CallQueue();
    const caller = () => ({ signal: never(), isKnown: false, address: '' });
    const failing = Array.from({ length: 40 }, () => queue.run(() => Promise.reject(new Error('x')), caller()));
    await Promise.allSettled(failing);
    expect(await queue.run(() => Promise.resolve('ok'), caller())).toBe('ok');
  });

  it('lets addresses take turns, each in the order of its calls', async () => {
    const { started, run, end } = fullQueue();
    for (const name of ['a1', 'a2', 'a3', 'a4']) void run(name, { address: '192.0.2.1' });
    void run('b1', { address: '192.0.2.2' });
    void run('c1', { address: '192.0.2.3' });
    void run('b2', { address: '192.0.2.2' });
    for (let index = 0; index < 7; index++) {
      await settle();
      end(`r${index}`);
    }
    await settle();
    expect(started.slice(16)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  it('turns away the last call of the address with the most, where another address comes', async () => {
    const { started, run, end } = fullQueue();
    const outcome = (call: Promise<void>): Promise<unknown> =>
      call.then(
        () => 'called',
        (error: AuthError) => error.reason,
      );
    const flood = Array.from({ length: 256 }, (_, index) => outcome(run(`a${index}`)));
    void run('b', { address: '192.0.2.2' });
    void run('c', { address: '2001:db8::1' });
    expect(await Promise.all(flood.slice(254))).toEqual(['introspection_unavailable', 'introspection_unavailable']);
    await expect(run('one more of a')).rejects.toMatchObject({ reason: 'introspection_unavailable' });
    for (let index = 0; index < 4; index++) end(`r${index}`);
    await settle();
    expect(started.slice(16)).toEqual(['a0', 'b', 'c', 'a1']);
  });

  it.each([
    ['the host part of an IPv6 address', '2001:db8:1:2::1', '2001:db8:1:2:ffff::7'],
    ['how much of it is abbreviated', '2001:db8::1', '2001:db8:0:0:8::'],
    ['how an IPv4 address is written', '192.0.2.9', '::ffff:192.0.2.9'],
  ])('takes for one address what differs in %s only', async (_what, one, other) => {
    const { started, run, end } = fullQueue();
    void run('a1', { address: one });
    void run('a2', { address: other });
    void run('b', { address: '2001:db8:1:3::1' });
    await settle();
    end('r0');
    end('r1');
    await settle();
    expect(started.slice(16)).toEqual(['a1', 'b']);
  });

  it('forgets a turned-away call, and an address without calls', async () => {
    const { started, run, end } = fullQueue();
    const aborting = new AbortController();
    const given = [run('a', { signal: aborting.signal }), run('b', { signal: aborting.signal, address: '192.0.2.2' })];
    void run('c', { address: '192.0.2.3' });
    aborting.abort();
    expect((await Promise.allSettled(given)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    for (let index = 0; index < 3; index++) end(`r${index}`);
    await settle();
    expect(started.slice(16)).toEqual(['c']);
    // Two places are free again.
    void run('d');
    void run('e');
    void run('f');
    await settle();
    expect(started.slice(17)).toEqual(['d', 'e']);
  });
});
