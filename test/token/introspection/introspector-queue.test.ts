import { AuthError } from '../../../src';
import { CallQueue } from '../../../src/token/introspection/introspector';
import { settle } from '../../support/fake-time';

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
