import { AuthError } from '../../src/core/errors';
import { IssuerClock } from '../../src/token/issuer-clock';
import { gateApp } from '../support/gate-app';
import { ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

describe('IssuerClock', () => {
  /** Responses whose `Date` is so many ms from the clock here, each `tookMs` after its request. */
  function measured(tookMs = 0) {
    let [nowMs, aheadMs] = [NOW_MS, 0];
    const headers: Record<string, string> = {};
    const logger = recordingLogger();
    const clock = new IssuerClock({
      ...{ issuer: ISSUER, clockToleranceMs: 10_000, logger, clock: () => nowMs },
      fetch() {
        nowMs += tookMs;
        const date = new Date(nowMs + aheadMs).toUTCString();
        return Promise.resolve(new Response('', { headers: { date, ...headers } }));
      },
    });
    const respond = async (ms: number) => {
      aheadMs = ms;
      await clock.fetch(ISSUER, {});
      return clock.difference;
    };
    return { clock, logger, headers, respond };
  }
  const apart = (seconds: number, where: string) =>
    `the clock of the authorization server is ${seconds} s ${where} this one`;

  it.each([
    [0, undefined],
    [10_000, undefined],
    [-10_900, undefined],
    [12_000, apart(12, 'ahead of')],
    [120_000, apart(120, 'ahead of')],
    [-12_000, apart(12, 'behind')],
  ])('a Date that is %j ms ahead', async (ms, difference) => {
    expect(await measured().respond(ms)).toBe(difference);
  });

  it('takes no slow response for a clock that is wrong', async () => {
    const { respond } = measured(30_000);
    expect(await respond(-15_000)).toBeUndefined();
    expect(await respond(60_000)).toMatch('ahead of');
  });

  it.each([
    ['without a Date', { date: '' }],
    ['from a cache', { age: '60' }],
  ])('learns nothing from a response %s', async (_how, given) => {
    const { clock, headers, respond } = measured();
    Object.assign(headers, given);
    expect([await respond(60_000), clock.isKnown]).toEqual([undefined, false]);
  });

  it('warns once until the clocks agree again', async () => {
    const { logger, respond } = measured();
    for (const ms of [60_000, 61_000, 0, -60_000]) await respond(ms);
    expect(logger.entries.map(({ level, message }) => [level, message])).toEqual([
      ['warn', `${apart(60, 'ahead of')}: synchronize both (NTP)`],
      ['warn', `${apart(60, 'behind')}: synchronize both (NTP)`],
    ]);
  });

  it('changes no other refusal than those for times, and no acceptance', async () => {
    const { clock, respond } = measured();
    const refuse = (reason: 'expired' | 'wrong_issuer') => () =>
      clock.explain(() => {
        throw new AuthError(reason, { privateDetail: 'why' });
      })({});
    expect(refuse('expired')).toThrow(expect.objectContaining({ reason: 'expired', privateDetail: 'why' }));
    await respond(60_000);
    const detail = `why; ${apart(60, 'ahead of')}`;
    expect(refuse('expired')).toThrow(expect.objectContaining({ reason: 'expired', privateDetail: detail }));
    expect(refuse('wrong_issuer')).toThrow(expect.objectContaining({ privateDetail: 'why' }));
  });

  it('a gate names the difference in the log and with the tokens that it refuses for it', async () => {
    const document = (body: object) => {
      const date = new Date(NOW_MS + 120_000).toUTCString();
      return Promise.resolve(new Response(JSON.stringify(body), { headers: { date } }));
    };
    const jwksUri = `${ISSUER}/keys`;
    const through = gateApp({ jwksUri, fetch: () => document(jwks(testKey())) });
    await through.gate.ready();
    await through.get(token({ claims: { iat: NOW + 120, exp: NOW + 600 } })).expect(401);
    await through.get(token()).expect(200);
    const refused = `iat is 120 s ahead; ${apart(120, 'ahead of')}`;
    expect(through.log.entries.map(({ message, fields }) => [message, fields['detail']])).toEqual([
      [`${apart(120, 'ahead of')}: synchronize both (NTP)`, undefined],
      ['request refused', refused],
    ]);
    await through.gate.close();
  });
});
