import { dpop } from '../../../src/gate/possession';
import type { Possession } from '../../../src/gate/possession';
import { memoryReplayStore } from '../../../src/gate/possession/replay-store';
import { BASE_URL, boundToken, dpopApp, proof, withProofs } from '../../support/dpop';
import type { DpopApp } from '../../support/dpop';
import { gateApp } from '../../support/gate-app';
import { fakeTime } from '../../support/fake-time';
import { NOW, NOW_MS } from '../../support/issuer';
import { testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

const refusedAs = { dpop: 'used' } as const;
const SECOND = testKey('ES256', 'second caller');

describe('a DPoP proof', () => {
  it('is accepted once, with whatever access token and spelling it comes again', async () => {
    const through = dpopApp();
    const once = proof({ claims: { jti: 'one' } });
    await through.send({ proof: once }).expect(200);
    through.reached.length = 0;
    const details = { ...refusedAs, detail: 'the proof was used before' };
    expectRefusal(await through.send({ proof: once }), 'invalid_dpop_proof', through, details);
    const resigned = proof({ claims: { jti: 'one', iat: NOW - 1 } });
    expectRefusal(await through.send({ proof: resigned }), 'invalid_dpop_proof', through, details);
  });

  it('is accepted once when two copies arrive together', async () => {
    const through = dpopApp();
    const once = proof();
    const responses = await Promise.all([1, 2, 3].map(() => through.send({ proof: once })));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it('does not use up the jti of another key, nor one that begins with the same 511 characters', async () => {
    const through = dpopApp();
    const [jti, other] = ['a', 'b'].map((last) => 'x'.repeat(511) + last);
    await through.send({ proof: proof({ claims: { jti } }) }).expect(200);
    await through.send({ proof: proof({ claims: { jti: other } }) }).expect(200);
    const accessToken = boundToken(SECOND);
    await through.send({ token: accessToken, proof: proof({ key: SECOND, accessToken, claims: { jti } }) }).expect(200);
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
    const details = through.log.at('info').map(({ fields }) => fields['detail']);
    expect(details).toEqual(['the proof was used before', 'iat is too old']);
  });
});

describe('a store of used proofs', () => {
  it('that is shared by two gates lets a proof through once', async () => {
    const replayStore = memoryReplayStore(() => NOW_MS);
    const [first, second] = [dpopApp({ replayStore }), dpopApp({ replayStore })];
    const once = proof();
    await first.send({ proof: once }).expect(200);
    await second.send({ proof: once }).expect(401);
  });

  it('in memory is part of the status of the gate', async () => {
    const through = dpopApp();
    expect(through.gate.status().usedProofs).toBeUndefined();
    await through.send().expect(200);
    expect(through.gate.status().usedProofs).toEqual({ proofs: 1, maxProofs: 500_000 });
  });

  // A process whose clock is ahead by the tolerance must not forget what one that is behind as much still accepts.
  it.each([
    [0, false, 60_000, 20_000],
    [10, false, 70_000, 20_000],
    [120, false, 180_000, 240_000],
    [0, true, 300_000, 20_000],
    [10, true, 300_000, 20_000],
    [120, true, 300_000, 240_000],
  ])('is told to keep a proof longer than it is accepted: tolerance %i s, nonce %s', async (...row) => {
    const [clockToleranceSeconds, nonce, acceptedMs, marginMs] = row;
    const remember = jest.fn((_id: string, _untilMs: number) => true);
    const through = dpopApp({ replayStore: { remember }, nonce }, { clockToleranceSeconds });
    const { headers } = await through.send();
    const claims = nonce ? { nonce: headers['dpop-nonce'] } : {};
    await through.send({ proof: proof({ claims }) }).expect(200);
    expect(remember.mock.calls.at(-1)?.[1]).toBe(NOW_MS + acceptedMs + marginMs);
  });
});

describe('nonces of the server', () => {
  /** The nonce that the gate asks for. */
  async function nonceOf(through: DpopApp): Promise<string> {
    const response = await through.send();
    expectRefusal(response, 'dpop_nonce_required', through, refusedAs);
    return response.headers['dpop-nonce'] as string;
  }

  /** A request whose proof contains this nonce. */
  const sendWith = (through: DpopApp, nonce: unknown, claims = {}) =>
    through.send({ proof: proof({ claims: { nonce, ...claims } }) });

  it('are asked for, and make a proof good whatever the clock of the client says', async () => {
    const through = dpopApp({ nonce: true });
    const { headers } = await sendWith(through, await nonceOf(through), { iat: 1 }).expect(200);
    expect(headers['dpop-nonce']).toBeUndefined();
  });

  it('are accepted for five minutes, and renewed in the second half of them', async () => {
    const time = fakeTime(NOW_MS);
    const through = dpopApp({ nonce: true }, { clock: time.clock });
    const nonce = await nonceOf(through);
    await time.advance(150_000);
    expect((await sendWith(through, nonce).expect(200)).headers['dpop-nonce']).toBeUndefined();
    await time.advance(1);
    const { headers } = await sendWith(through, nonce).expect(200);
    await time.advance(149_998);
    await sendWith(through, nonce).expect(200);
    through.reached.length = 0;
    await time.advance(1);
    expectRefusal(await sendWith(through, nonce), 'dpop_nonce_required', through, refusedAs);
    await sendWith(through, headers['dpop-nonce']).expect(200);
  });

  it('are new in each refusal that asks for one', async () => {
    const time = fakeTime(NOW_MS);
    const through = dpopApp({ nonce: true }, { clock: time.clock });
    await nonceOf(through);
    await time.advance(300_000);
    through.reached.length = 0;
    await sendWith(through, await nonceOf(through)).expect(200);
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
    await sendWith(sharing(nonces), nonce).expect(200);
    const through = dpopApp({ nonce: true });
    expectRefusal(await sendWith(through, nonce), 'dpop_nonce_required', through, refusedAs);
  });

  it.each([undefined, 'x', 'A'.repeat(30), 'B'.repeat(4_000)])('cannot be made up: %p', async (nonce) => {
    const through = dpopApp({ nonce: true });
    expectRefusal(await sendWith(through, nonce), 'dpop_nonce_required', through, refusedAs);
  });

  it('are not accepted once the clock has stepped back by more than 10 s', async () => {
    const nonces = dpop({ baseUrl: BASE_URL, nonce: true });
    const through = sharing(nonces);
    await sendWith(through, await nonceOf(sharing(nonces, 10_000))).expect(200);
    await sendWith(through, await nonceOf(sharing(nonces, 10_001))).expect(401);
  });

  it('are in the headers of the error that the app handles', async () => {
    const through = dpopApp({ nonce: true }, { refusals: 'next' });
    const { headers } = await through.send().expect(401);
    expect(headers['www-authenticate']).toMatch(/^DPoP realm="api", error="use_dpop_nonce"/);
    await sendWith(through, headers['dpop-nonce']).expect(200);
  });

  it('are asked for after everything else about the proof is good', async () => {
    const through = dpopApp({ nonce: true });
    const response = await through.send({ proof: proof({ method: 'POST' }) });
    expectRefusal(response, 'invalid_dpop_proof', through, refusedAs);
    expect(response.headers['dpop-nonce']).toBeUndefined();
  });
});
