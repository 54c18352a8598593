import { createPublicKey } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { AuthError } from '../../../src/gate/core/errors';
import type { Caller } from '../../../src/gate/token/fair-queue';
import { parseToken } from '../../../src/gate/token/jws';
import type { VerificationKey } from '../../../src/gate/token/keys/key-set';
import { SignatureVerifier } from '../../../src/gate/token/signature';
import { token } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';
import type { TestKey } from '../../support/keys';

const CHEAP = 20;

/** The public half, as a key source returns it. */
function verificationKey({ kid, privateKey }: TestKey, costUs = CHEAP): VerificationKey {
  return { keyId: kid, key: createPublicKey(privateKey), algorithms: ['ES256'], costUs, tenant: undefined };
}

const KEY = verificationKey(testKey());
const FORGED = token({ key: newKey('ES256', testKey().kid) });

/** A good token, different from those of other numbers, and at each call: ES256 signs at random. */
const good = (number: number): string => token({ claims: { jti: `t${number}` } });

/** Lets promises that are settled call back. */
const settle = (): Promise<void> => new Promise(setImmediate);

describe('cheap signatures', () => {
  /** A queue whose turns a test runs; each signature takes `msEach`. */
  function testQueue(msEach = 0): { queue: SignatureVerifier; turn: () => Promise<void>; turns: () => number } {
    const deferred: (() => void)[] = [];
    let nowMs = 0;
    const now = (): number => (nowMs += msEach) - msEach;
    return {
      queue: new SignatureVerifier((task) => void deferred.push(task), now),
      turn() {
        deferred.shift()?.();
        return settle();
      },
      turns: () => deferred.length,
    };
  }

  /** Adds tokens, and notes in the order of the decisions: the number of a token, or the reason of its refusal. */
  function decisions(queue: SignatureVerifier, tokens: readonly string[], key = KEY): unknown[] {
    const decided: unknown[] = [];
    for (const [number, raw] of tokens.entries()) {
      queue.verify(parseToken(raw), key, 'ES256').then(
        () => decided.push(number),
        (error: unknown) => decided.push((error as AuthError).reason),
      );
    }
    return decided;
  }

  it('verifies all tokens of one turn in the next, in the order of their arrival; a forged one refuses itself only', async () => {
    const { queue, turn, turns } = testQueue();
    const decided = decisions(queue, [good(0), good(1), FORGED, good(3)]);
    await settle();
    expect([decided, turns()]).toEqual([[], 1]);
    await turn();
    expect([decided, turns()]).toEqual([[0, 1, 'bad_signature', 3], 0]);
  });

  it('waits one turn again after it has been empty', async () => {
    const { queue, turn, turns } = testQueue();
    for (const number of [1, 2]) {
      const decided = decisions(queue, [good(number)]);
      expect(turns()).toBe(1);
      await turn();
      expect(decided).toEqual([0]);
    }
  });

  it('verifies at most 64 tokens per turn, the rest in the next one, before tokens that arrived later', async () => {
    const { queue, turn, turns } = testQueue();
    const first = decisions(
      queue,
      Array.from({ length: 65 }, (_, number) => good(number)),
    );
    await turn();
    expect([first.length, turns()]).toEqual([64, 1]);
    const later = decisions(queue, [good(100)]);
    expect(turns()).toBe(1);
    await turn();
    expect([first.length, later, turns()]).toEqual([65, [0], 0]);
  });

  it('ends a turn after 3 ms, and verifies at least one token in each', async () => {
    const tokens = [good(0), good(1), good(2), good(3)];
    const quick = testQueue(1);
    const decided = decisions(quick.queue, tokens);
    await quick.turn();
    expect(decided).toEqual([0, 1, 2]);

    const slow = testQueue(10);
    const oneByOne = decisions(slow.queue, tokens);
    for (const number of tokens.keys()) {
      await slow.turn();
      expect(oneByOne).toHaveLength(number + 1);
    }
  });

  describe('a token that waits already', () => {
    it('is verified once for all its requests, also when it is refused', async () => {
      const { queue, turn } = testQueue();
      const raw = good(0);
      const results = [raw, raw, FORGED, FORGED].map((each) => queue.verify(parseToken(each), KEY, 'ES256'));
      expect(results[1]).toBe(results[0]);
      expect(results[3]).toBe(results[2]);
      const settled = Promise.allSettled(results);
      await turn();
      expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    });

    it('is verified again after that turn', async () => {
      const { queue, turn, turns } = testQueue();
      const raw = good(0);
      const first = decisions(queue, [raw]);
      await turn();
      const second = decisions(queue, [raw]);
      expect([first, second, turns()]).toEqual([[0], [], 1]);
      await turn();
      expect(second).toEqual([0]);
    });

    it('is verified for itself where its key was replaced meanwhile', async () => {
      const { queue, turn } = testQueue();
      const raw = good(0);
      const replaced = decisions(queue, [raw], verificationKey(newKey('ES256', testKey().kid)));
      const current = decisions(queue, [raw]);
      await turn();
      expect([replaced, current]).toEqual([['bad_signature'], [0]]);
    });

    it('does not decide for another one with the same signature', async () => {
      const genuine = good(0);
      const [header, , signature = ''] = genuine.split('.');
      const altered = [header, good(1).split('.')[1], signature].join('.');
      expect([altered === genuine, altered.endsWith(signature)]).toEqual([false, true]);
      for (const [tokens, expected] of [
        [
          [genuine, altered],
          [0, 'bad_signature'],
        ],
        [
          [altered, genuine],
          ['bad_signature', 1],
        ],
        [
          [genuine, altered, genuine, altered],
          [0, 2, 'bad_signature', 'bad_signature'],
        ],
      ] as const) {
        const { queue, turn } = testQueue();
        const decided = decisions(queue, tokens);
        await turn();
        expect([...decided].sort()).toEqual([...expected].sort());
      }
    });
  });
});

describe('expensive signatures', () => {
  /** A quarter of what waits at most, with any number of processors: none runs beside another one, and four wait. */
  const QUARTER = 62_500 * Math.max(1, availableParallelism() - 1);
  const EXPENSIVE = verificationKey(testKey(), QUARTER);

  /** Verifies tokens in the order given, and notes how each was decided, in the order of the decisions. */
  function decisionsOf(queue: SignatureVerifier, each: readonly [raw: string, caller?: Caller][]) {
    const decided: unknown[] = [];
    const all = each.map(([raw, caller], number) =>
      queue.verify(parseToken(raw), EXPENSIVE, 'ES256', caller).then(
        () => decided.push(number),
        (error: unknown) => decided.push(`${number}: ${(error as AuthError).reason}`),
      ),
    );
    return { decided, all: Promise.all(all) };
  }

  /** A caller that disconnects when a test says so. */
  function leavingCaller(address: string): Caller & { leave: () => void } {
    const socket = { destroyed: false };
    return { address, socket, leave: () => void (socket.destroyed = true) };
  }

  it('are verified while the event loop goes on, and a forged one refuses itself only', async () => {
    const { decided, all } = decisionsOf(new SignatureVerifier(), [[good(0)], [FORGED], [good(2)]]);
    await Promise.resolve();
    expect(decided).toEqual([]);
    await all;
    expect(decided).toEqual([0, '1: bad_signature', 2]);
  });

  it('wait for no cheap one, nor does a cheap one wait for them', async () => {
    const queue = new SignatureVerifier();
    const expensive = decisionsOf(queue, [[good(0)], [good(1)], [good(2)], [good(3)]]);
    await queue.verify(parseToken(good(4)), KEY, 'ES256');
    expect(expensive.decided.length).toBeLessThan(4);
    await expensive.all;
    expect(expensive.decided).toEqual([0, 1, 2, 3]);
  });

  it('are verified once for all requests with a token, and again afterwards', async () => {
    const queue = new SignatureVerifier();
    const raw = good(0);
    const first = [raw, raw, FORGED, FORGED].map((each) => queue.verify(parseToken(each), EXPENSIVE, 'ES256'));
    expect(first[1]).toBe(first[0]);
    expect(first[3]).toBe(first[2]);
    const settled = await Promise.allSettled(first);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    expect(queue.verify(parseToken(raw), EXPENSIVE, 'ES256')).not.toBe(first[0]);
  });

  it('are refused with 429 and Retry-After when more wait than a quarter of a second takes', async () => {
    const queue = new SignatureVerifier();
    const { all, decided } = decisionsOf(
      queue,
      Array.from({ length: 6 }, (_, number) => [good(number)]),
    );
    await expect(queue.verify(parseToken(good(6)), EXPENSIVE, 'ES256')).rejects.toMatchObject({
      reason: 'too_many_unknown_keys',
      privateDetail: 'too many signatures wait',
      status: 429,
      headers: { 'Retry-After': '1' },
    });
    await all;
    expect(decided).toEqual(['5: too_many_unknown_keys', 0, 1, 2, 3, 4]);
  });

  it('of one site turn away none of another one', async () => {
    const flood = Array.from({ length: 20 }, (): [string, Caller] => [FORGED, { address: '2001:db8::1' }]).map(
      ([, caller]): [string, Caller] => [token({ key: newKey('ES256', testKey().kid) }), caller],
    );
    const { decided, all } = decisionsOf(new SignatureVerifier(), [...flood, [good(0), { address: '192.0.2.1' }]]);
    await all;
    const turnedAway = decided.filter((each) => String(each).endsWith('too_many_unknown_keys'));
    expect(turnedAway).toHaveLength(16);
    // The first was running; the site that was not served yet is next.
    expect(decided.indexOf(20) - turnedAway.length).toBe(1);
  });

  it('of proven clients and of sites take turns', async () => {
    const client = { address: '192.0.2.1', client: 'a' };
    const { decided, all } = decisionsOf(new SignatureVerifier(), [
      [good(0), client],
      [good(1), client],
      [good(2), client],
      [good(3), { address: '192.0.2.1' }],
      [good(4), { address: '192.0.2.1' }],
    ]);
    await all;
    expect(decided).toEqual([0, 3, 1, 4, 2]);
  });

  it('are not verified for a client that has disconnected, unless another request waits with the same token', async () => {
    const [alone, first, second] = [leavingCaller('a'), leavingCaller('a'), leavingCaller('b')];
    const [lonely, shared] = [good(1), good(2)];
    const { decided, all } = decisionsOf(new SignatureVerifier(), [
      [good(0)],
      [lonely, alone],
      [shared, first],
      [shared, second],
    ]);
    alone.leave();
    first.leave();
    await all;
    expect(decided).toEqual([0, '1: too_many_unknown_keys', 2, 3]);
  });

  it('are not verified when all clients with the token have disconnected', async () => {
    const callers = [leavingCaller('a'), leavingCaller('b')] as const;
    const raw = good(1);
    const { decided, all } = decisionsOf(new SignatureVerifier(), [[good(0)], [raw, callers[0]], [raw, callers[1]]]);
    for (const caller of callers) caller.leave();
    await all;
    expect(decided).toEqual([0, '1: too_many_unknown_keys', '2: too_many_unknown_keys']);
  });
});
