import { AuthError } from '../../../src';
import { callQueue } from '../../../src/token/introspection/introspector';
import { settle } from '../../support/fake-time';

const never = (): AbortSignal => new AbortController().signal;

/** A queue whose places are all taken, and what ends the calls that take them. */
function fullQueue() {
  const queue = callQueue();
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  function run(name: string, signal = never(), isKnown = false): Promise<void> {
    const call = (): Promise<void> => {
      started.push(name);
      return new Promise((resolve) => ends.set(name, resolve));
    };
    return queue.run(call, signal, isKnown);
  }
  for (let index = 0; index < 16; index++) void run(`r${index}`);
  return { started, run, end: (name: string) => ends.get(name)?.() };
}

describe('callQueue()', () => {
  it('forgets a call whose wait was aborted, and loses no place', async () => {
    const { started, run, end } = fullQueue();
    const waiting = new AbortController();
    const givenUp = run('given up', waiting.signal).catch((error: unknown) => error);
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
    void run('known', never(), true);
    end('r0');
    end('r1');
    await settle();
    expect(started.slice(16)).toEqual(['known', 'w0']);
    expect(waiting).toHaveLength(256);
  });

  it('gives a place back when a call fails', async () => {
    const queue = callQueue();
    const failing = Array.from({ length: 40 }, () => queue.run(() => Promise.reject(new Error('x')), never(), false));
    await Promise.allSettled(failing);
    expect(await queue.run(() => Promise.resolve('ok'), never(), false)).toBe('ok');
  });
});
