import { dpop } from '../../../src/gate/possession';
import type { Possession, ReplayStore } from '../../../src/gate/possession';
import { memoryReplayStore } from '../../../src/gate/possession/replay-store';
import { AuthError } from '../../../src/gate';
import { BASE_URL, boundToken, callerKey, dpopApp, proof, withProofs } from '../../support/dpop';
import type { DpopApp } from '../../support/dpop';
import { gateApp } from '../../support/gate-app';
import { fakeTime } from '../../support/fake-time';
import { ISSUER, NOW, NOW_MS } from '../../support/issuer';
import { testKey } from '../../support/keys';
import type { TestKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

const refusedAs = { dpop: 'used' } as const;

describe('a DPoP proof', () => {
  it('is accepted once, with whatever access token and spelling it comes again', async () => {
    const through = dpopApp();
    const once = proof({ claims: { jti: 'one' } });
    await through.send({ proof: once }).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.send({ proof: once }), 'invalid_dpop_proof', through, {
      ...refusedAs,
      detail: 'the proof was used before',
    });
    const resigned = proof({ claims: { jti: 'one', iat: NOW - 1 } });
    expectRefusal(await through.send({ proof: resigned }), 'invalid_dpop_proof', through, refusedAs);
  });

  it('is accepted once when two copies arrive together', async () => {
    const through = dpopApp();
    const once = proof();
    const responses = await Promise.all([1, 2, 3].map(() => through.send({ proof: once })));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it('does not use up the jti of another key', async () => {
    const through = dpopApp();
    const key = testKey('ES256', 'second caller');
    const accessToken = boundToken(key);
    await through.send({ proof: proof({ claims: { jti: 'one' } }) }).expect(200);
    await through.send({ token: accessToken, proof: proof({ key, accessToken, claims: { jti: 'one' } }) }).expect(200);
  });

  it('does not use up a jti that begins with the same 511 characters', async () => {
    const through = dpopApp();
    for (const last of ['a', 'b']) {
      const jti = 'x'.repeat(511) + last;
      await through.send({ proof: proof({ claims: { jti } }) }).expect(200);
    }
  });

  it('is not used up by a request that is refused for another reason', async () => {
    const through = dpopApp();
    const once = proof();
    await through.send({ proof: once, path: '/v1/refunds' }).expect(401);
    await through.send({ proof: once }).expect(200);
  });

  it('is refused up to the end of its time, also where it is accepted early', async () => {
    const time = fakeTime(NOW_MS);
    const through = dpopApp({}, { clock: time.clock });
    const early = proof({ claims: { iat: NOW + 10 } });
    await through.send({ proof: early }).expect(200);
    for (const ms of [79_999, 1]) {
      await time.advance(ms);
      expect((await through.send({ proof: early })).body.code).toBe('invalid_dpop_proof');
    }
    expect(through.log.at('info').map(({ fields }) => fields['detail'])).toEqual([
      'the proof was used before',
      'iat is too old',
    ]);
  });
});

describe('a store of used proofs', () => {
  it.each<[string, ReplayStore]>([
    [
      'throws',
      {
        remember: () => {
          throw new Error('down');
        },
      },
    ],
    ['rejects', { remember: () => Promise.reject(new Error('down')) }],
  ])('that %s makes the request a 503', async (_what, replayStore) => {
    const through = dpopApp({ replayStore });
    expectRefusal(await through.send(), 'replay_store_unavailable', through, refusedAs);
    expect(through.decisions.at(-1)?.error?.cause).toEqual(new Error('down'));
  });

  it('that throws a refusal of another kind is an outage', async () => {
    const replayStore = { remember: () => Promise.reject(new AuthError('insufficient_scope')) };
    const through = dpopApp({ replayStore });
    expectRefusal(await through.send(), 'replay_store_unavailable', through, refusedAs);
  });

  it('that resolves to anything but true has the proof refused', async () => {
    const through = dpopApp({ replayStore: { remember: () => 'OK' as unknown as boolean } });
    expectRefusal(await through.send(), 'invalid_dpop_proof', through, refusedAs);
  });

  it('that is shared by two gates lets a proof through once', async () => {
    const replayStore = memoryReplayStore(() => NOW_MS);
    const [first, second] = [dpopApp({ replayStore }), dpopApp({ replayStore })];
    const once = proof();
    await first.send({ proof: once }).expect(200);
    await second.send({ proof: once }).expect(401);
  });
});

describe('one client that sends more proofs than its share', () => {
  it('is refused with every key that it has, and does not use up the room of another client', async () => {
    const through = dpopApp({ replayStore: memoryReplayStore(() => NOW_MS, 64) });
    const keys = Array.from({ length: 24 }, (_, number) => testKey('ES256', `caller ${number}`));
    const send = (key: TestKey, accessToken: string) =>
      through.send({ token: accessToken, proof: proof({ key, accessToken }) });
    const statuses: number[] = [];
    for (let use = 0; use < 2; use++) {
      for (const key of keys) statuses.push((await send(key, boundToken(key))).status);
    }
    expect(statuses).toEqual([...Array<number>(32).fill(200), ...Array<number>(16).fill(429)]);
    through.reached.length = 0;
    for (const key of keys.slice(0, 3)) {
      expectRefusal(await send(key, boundToken(key)), 'too_many_proofs', through, refusedAs);
    }
    const key = keys[0] as TestKey;
    await send(key, boundToken(key, { client_id: 'another' })).expect(200);
  });

  it('is named to the store with its issuer', async () => {
    const remember = jest.fn(() => true);
    await dpopApp({ replayStore: { remember } }).send().expect(200);
    expect(remember).toHaveBeenCalledWith(
      expect.stringMatching(/^[\w-]{22}$/),
      expect.any(Number),
      `client ${ISSUER} pos-17`,
    );
  });
});

describe('how long a proof is remembered', () => {
  /** Ms between the last moment at which the proof is accepted and the one until which it is remembered. */
  async function marginOf(clockToleranceSeconds: number, nonce: boolean): Promise<number> {
    const remember = jest.fn((_id: string, _untilMs: number) => true);
    const through = dpopApp({ replayStore: { remember }, nonce }, { clockToleranceSeconds });
    const { headers } = await through.send();
    const claims = nonce ? { nonce: headers['dpop-nonce'] } : {};
    await through.send({ proof: proof({ claims }) }).expect(200);
    const lifetimeMs = nonce ? 300_000 : 60_000 + 1000 * clockToleranceSeconds;
    return (remember.mock.calls.at(-1)?.[1] ?? NaN) - NOW_MS - lifetimeMs;
  }

  // A process whose clock is ahead by the tolerance must not forget what one that is behind as much still accepts.
  it.each([
    [0, 20_000],
    [10, 20_000],
    [120, 240_000],
  ])('is longer than it is accepted: tolerance %i s, margin %i ms', async (seconds, marginMs) => {
    expect(await marginOf(seconds, false)).toBe(marginMs);
    expect(await marginOf(seconds, true)).toBe(marginMs);
  });
});

describe('the store in memory', () => {
  it('lets one client have half of it, two a third each, and gives the room back when proofs end', () => {
    const time = fakeTime(0);
    const store = memoryReplayStore(time.clock, 12);
    const fill = (client: string, untilMs: number): number => {
      for (let count = 0; ; count++) {
        try {
          void store.remember(`${client} ${untilMs} ${count}`, untilMs, client);
        } catch (error) {
          expect(error).toMatchObject({ reason: 'too_many_proofs' });
          return count;
        }
      }
    };
    expect([fill('a', 10), fill('b', 20), fill('c', 30), fill('a', 11)]).toEqual([6, 3, 2, 0]);
    expect(store.remember('last', 30, 'd')).toBe(true);
    expect(fill('e', 30)).toBe(0);
    time.step(10);
    expect(fill('a', 40)).toBe(3);
  });

  it('refuses what is new when it is full, and has room again when proofs end', () => {
    const time = fakeTime(0);
    const store = memoryReplayStore(time.clock, 2);
    const remembered = [store.remember('a', 10, 'x'), store.remember('b', 20, 'y'), store.remember('a', 10, 'x')];
    expect(remembered).toEqual([true, true, false]);
    expect(() => store.remember('c', 30, 'z')).toThrow(new AuthError('too_many_proofs'));
    time.step(10);
    expect([store.remember('c', 30, 'z'), store.remember('b', 20, 'y')]).toEqual([true, false]);
  });

  it('does not take an ended proof for new after the clock stepped back', () => {
    const time = fakeTime(0);
    const store = memoryReplayStore(time.clock);
    void store.remember('a', 10, 'x');
    time.step(10);
    void store.remember('b', 30, 'x');
    time.step(-10);
    expect([store.remember('a', 10, 'x'), store.remember('c', 11, 'x')]).toEqual([false, true]);
  });

  it('does not take one for new that ended before another, after the clock stepped back', () => {
    const time = fakeTime(0);
    const store = memoryReplayStore(time.clock);
    void store.remember('late', 30, 'x');
    void store.remember('early', 10, 'x');
    time.step(30);
    void store.remember('b', 60, 'x');
    time.step(-25);
    expect([store.remember('late', 30, 'x'), store.remember('c', 31, 'x')]).toEqual([false, true]);
  });
});

describe('nonces of the server', () => {
  /** The nonce that the gate asks for. */
  async function nonceOf(through: ReturnType<typeof dpopApp>): Promise<string> {
    const response = await through.send();
    expectRefusal(response, 'dpop_nonce_required', through, refusedAs);
    return response.headers['dpop-nonce'] as string;
  }

  it('are asked for, and make a proof good whatever the clock of the client says', async () => {
    const through = dpopApp({ nonce: true });
    const nonce = await nonceOf(through);
    const response = await through.send({ proof: proof({ claims: { nonce, iat: 1 } }) }).expect(200);
    expect(response.headers['dpop-nonce']).toBeUndefined();
  });

  it('are accepted for five minutes, and renewed in the second half of them', async () => {
    const time = fakeTime(NOW_MS);
    const through = dpopApp({ nonce: true }, { clock: time.clock });
    const nonce = await nonceOf(through);
    await time.advance(150_000);
    expect(
      (await through.send({ proof: proof({ claims: { nonce } }) }).expect(200)).headers['dpop-nonce'],
    ).toBeUndefined();
    await time.advance(149_999);
    const { headers } = await through.send({ proof: proof({ claims: { nonce } }) }).expect(200);
    through.reached.length = 0;
    await time.advance(1);
    const refused = await through.send({ proof: proof({ claims: { nonce } }) });
    expectRefusal(refused, 'dpop_nonce_required', through, refusedAs);
    await through.send({ proof: proof({ claims: { nonce: headers['dpop-nonce'] } }) }).expect(200);
  });

  it('do not let a proof be used twice', async () => {
    const through = dpopApp({ nonce: true });
    const once = proof({ claims: { nonce: await nonceOf(through) } });
    await through.send({ proof: once }).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.send({ proof: once }), 'invalid_dpop_proof', through, refusedAs);
  });

  /** A gate with nonces that it may share with others. */
  const sharing = (nonces: Possession, ms = 0): DpopApp =>
    withProofs(gateApp({ possession: [nonces], clock: () => NOW_MS + ms }));

  it('are those of one dpop(), whichever of its gates asked, and not those of another', async () => {
    const nonces = dpop({ baseUrl: BASE_URL, nonce: true });
    const nonce = await nonceOf(sharing(nonces));
    await sharing(nonces)
      .send({ proof: proof({ claims: { nonce } }) })
      .expect(200);
    const through = dpopApp({ nonce: true });
    expectRefusal(
      await through.send({ proof: proof({ claims: { nonce } }) }),
      'dpop_nonce_required',
      through,
      refusedAs,
    );
  });

  it.each(['', 'x', 'A'.repeat(30), 'B'.repeat(4_000)])('cannot be made up: %p', async (nonce) => {
    const through = dpopApp({ nonce: true });
    const made = nonce === '' ? undefined : nonce;
    const response = await through.send({ proof: proof({ claims: { nonce: made } }) });
    expectRefusal(response, 'dpop_nonce_required', through, refusedAs);
  });

  it('are not accepted once the clock has stepped back by more than 10 s', async () => {
    const nonces = dpop({ baseUrl: BASE_URL, nonce: true });
    const ahead = (ms: number) => nonceOf(sharing(nonces, ms));
    const through = sharing(nonces);
    await through.send({ proof: proof({ claims: { nonce: await ahead(10_000) } }) }).expect(200);
    await through.send({ proof: proof({ claims: { nonce: await ahead(10_001) } }) }).expect(401);
  });

  it('are in the headers of the error that the app handles', async () => {
    const through = dpopApp({ nonce: true }, { refusals: 'next' });
    const { headers } = await through.send().expect(401);
    expect(headers['www-authenticate']).toMatch(/^DPoP realm="api", error="use_dpop_nonce"/);
    await through.send({ proof: proof({ claims: { nonce: headers['dpop-nonce'] } }) }).expect(200);
  });

  it('are asked for after everything else about the proof is good', async () => {
    const through = dpopApp({ nonce: true });
    const response = await through.send({ proof: proof({ key: callerKey(), method: 'POST' }) });
    expectRefusal(response, 'invalid_dpop_proof', through, refusedAs);
    expect(response.headers['dpop-nonce']).toBeUndefined();
  });
});
