import type { ReplayStore } from '../../src/dpop';
import { memoryReplayStore } from '../../src/dpop';
import { boundToken, callerKey, dpopApp, proof } from '../support/dpop';
import { fakeTime } from '../support/fake-time';
import { NOW, NOW_MS } from '../support/issuer';
import { testKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';

const refusedAs = { dpop: 'used' } as const;

describe('a DPoP proof', () => {
  it('is accepted once, with whatever access token and spelling it comes again', async () => {
    const through = dpopApp();
    const once = proof({ claims: { jti: 'one' } });
    await through.send({ proof: once }).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.send({ proof: once }), 'invalid_dpop_proof', through, refusedAs);
    expect(through.log.at('info').at(-1)?.fields['detail']).toBe('the proof was used before');
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

  it('that resolves to anything but true has the proof refused', async () => {
    const through = dpopApp({ replayStore: { remember: () => 'OK' as unknown as boolean } });
    expectRefusal(await through.send(), 'invalid_dpop_proof', through, refusedAs);
  });

  it('that is shared by two gates lets a proof through once', async () => {
    const replayStore = memoryReplayStore({ clock: () => NOW_MS });
    const [first, second] = [dpopApp({ replayStore }), dpopApp({ replayStore })];
    const once = proof();
    await first.send({ proof: once }).expect(200);
    await second.send({ proof: once }).expect(401);
  });
});

describe('the store in memory', () => {
  it('refuses what is new when it is full, and has room again when proofs end', () => {
    const time = fakeTime(0);
    const store = memoryReplayStore({ maxProofs: 2, clock: time.clock });
    expect([store.remember('a', 10), store.remember('b', 20), store.remember('a', 10)]).toEqual([true, true, false]);
    expect(() => store.remember('c', 30)).toThrow('the replay store is full: 2 proofs');
    time.step(10);
    expect([store.remember('c', 30), store.remember('b', 20)]).toEqual([true, false]);
  });

  it('does not take an ended proof for new after the clock stepped back', () => {
    const time = fakeTime(0);
    const store = memoryReplayStore({ clock: time.clock });
    void store.remember('a', 10);
    time.step(10);
    void store.remember('b', 30);
    time.step(-10);
    expect([store.remember('a', 10), store.remember('c', 11)]).toEqual([false, true]);
  });

  it.each([
    [{ maxProofs: 0 }, 'option "maxProofs" must be a whole number of proofs from 1 to 9007199254740991, got 0'],
    [{ max: 1 }, 'unknown option "max"; did you mean "maxProofs"?'],
  ])('refuses %j', (options, message) => {
    expect(() => memoryReplayStore(options as { maxProofs?: number })).toThrow(
      new TypeError(`memoryReplayStore(): ${message}`),
    );
  });
});

describe('nonces of the server', () => {
  const secret = 'a secret that all processes of the API know';

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
    const through = dpopApp({ nonce: { secret } }, { clock: time.clock });
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

  it('are shared by processes with one secret, and not by others', async () => {
    const nonce = await nonceOf(dpopApp({ nonce: { secret } }));
    await dpopApp({ nonce: { secret } })
      .send({ proof: proof({ claims: { nonce } }) })
      .expect(200);
    for (const other of [true, { secret: `${secret}.` }]) {
      const through = dpopApp({ nonce: other });
      const refused = await through.send({ proof: proof({ claims: { nonce } }) });
      expectRefusal(refused, 'dpop_nonce_required', through, refusedAs);
    }
  });

  it.each(['', 'x', 'A'.repeat(30), 'B'.repeat(4_000)])('cannot be made up: %p', async (nonce) => {
    const through = dpopApp({ nonce: true });
    const made = nonce === '' ? undefined : nonce;
    const response = await through.send({ proof: proof({ claims: { nonce: made } }) });
    expectRefusal(response, 'dpop_nonce_required', through, refusedAs);
  });

  it('are not accepted from a process whose clock is more than 10 s ahead', async () => {
    const ahead = (ms: number) => nonceOf(dpopApp({ nonce: { secret } }, { clock: () => NOW_MS + ms }));
    const through = dpopApp({ nonce: { secret } });
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
