import express from 'express';
import { authenticate, reportOnly } from '../../../src/gate';
import { memoryGenerations } from '../../../src/gate/generation';
import { fakeTime, settle } from '../../support/fake-time';
import { gateApp, getFrom } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { active, introspectingGate } from '../../support/introspection';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';
import { expectRefusal } from '../../support/refusals';

const COUNTER = 7;
/** The token of the tests was issued before. */
const CHANGE_MS = NOW_MS;
const OLD_COUNTER = { generation: COUNTER - 1 };
const OLD_TIME = { generation: CHANGE_MS - 1 };
const BY_IAT = { generation: undefined, iat: CHANGE_MS / 1000 - 60 };

/** What becomes of a token, by what raises the floor of its client. */
type Row = [
  what: string,
  claims: Readonly<Record<string, unknown>>,
  floor: number | undefined,
  by: 'source' | 'token',
  expected: string,
];

const ROWS: readonly Row[] = [
  ['a stamped time, no floor', OLD_TIME, undefined, 'source', 'accepted'],
  ['a stamped counter, no floor', OLD_COUNTER, undefined, 'source', 'accepted'],
  ['iat, no floor', BY_IAT, undefined, 'source', 'accepted'],
  ['a stamped time, ms by source', OLD_TIME, CHANGE_MS, 'source', 'superseded'],
  ['a stamped counter, counter by source', OLD_COUNTER, COUNTER, 'source', 'superseded'],
  ['a stamped time, counter by source', OLD_TIME, COUNTER, 'source', 'accepted'],
  ['iat, ms by source', BY_IAT, CHANGE_MS, 'source', 'superseded'],
  ['iat, counter by source', BY_IAT, COUNTER, 'source', 'generation_missing'],
  ['a stamped time, ms set by a token', OLD_TIME, CHANGE_MS, 'token', 'superseded'],
  ['a stamped counter, counter set by a token', OLD_COUNTER, COUNTER, 'token', 'superseded'],
  ['iat, ms set by a token', BY_IAT, CHANGE_MS, 'token', 'superseded'],
  ['iat, counter set by a token', BY_IAT, COUNTER, 'token', 'generation_missing'],
];

const expectOutcome = async (through: GateApp, raw: string, expected: string): Promise<void> => {
  through.reached.length = 0;
  const response = await through.get(raw);
  if (expected === 'accepted') expect({ status: response.status, ...through }).toMatchObject({ status: 200 });
  else expectRefusal(response, expected as 'superseded', through);
};

/** Raises the floor of the client, or leaves it. */
async function change(through: GateApp, source: ReturnType<typeof memoryGenerations>, row: Row): Promise<void> {
  const [, , floor, by] = row;
  if (floor === undefined) return;
  if (by === 'token') await through.get(token({ claims: { generation: floor, jti: 'newer' } })).expect(200);
  else await source.append([['pos-17', floor]]);
  await settle();
}

describe.each(ROWS)('a token compared by %s', (...row) => {
  const [, claims, , , expected] = row;
  const source = () => memoryGenerations({ clock: () => NOW_MS });

  it(`is ${expected} as a first one`, async () => {
    const generationSource = source();
    const through = gateApp({ generationSource });
    await change(through, generationSource, row);
    await expectOutcome(through, token({ claims }), expected);
    await through.gate.close();
  });

  it(`is ${expected} from the cache, and where it is held`, async () => {
    const time = fakeTime(NOW_MS);
    const generationSource = memoryGenerations({ clock: time.clock, schedule: time.schedule });
    const through = gateApp({ generationSource, clock: time.clock, schedule: time.schedule });
    await time.advance(0);
    const raw = token({ claims });
    for (const _ of [1, 2, 3]) await through.get(raw).expect(200);
    const ended: string[] = [];
    through.gate.hold(through.decisions.at(-1)!.auth!, (reason) => ended.push(reason));
    await change(through, generationSource, row);
    await time.advance(0);
    expect(ended).toEqual(expected === 'accepted' ? [] : [expected]);
    await expectOutcome(through, raw, expected);
    await through.gate.close();
  });

  it(`is ${expected} from the cache of opaque tokens`, async () => {
    const generationSource = source();
    const through = introspectingGate({ generationSource, keys: jwks(testKey()) });
    through.endpoint.tokens.set('mine', active(claims));
    for (const _ of [1, 2]) await through.get('mine').expect(200);
    await change(through, generationSource, row);
    await expectOutcome(through, 'mine', expected);
    await through.gate.close();
  });

  it(`is ${expected} in a trial`, async () => {
    const [, , floor, by] = row;
    const generationSource = source();
    const logger = recordingLogger();
    const options = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS };
    const gate = authenticate({ ...options, generationSource, logger });
    const app = express().use(reportOnly(gate), (_req, res) => void res.json('ok'));
    const raw = token({ claims });
    for (const _ of [1, 2, 3]) await getFrom(app, raw).expect(200);
    if (floor !== undefined && by === 'token') await getFrom(app, token({ claims: { generation: floor } })).expect(200);
    else if (floor !== undefined) await generationSource.append([['pos-17', floor]]);
    await settle();
    await getFrom(app, raw).expect(200);
    const reported = logger.entries.flatMap(({ fields }) => ('reason' in fields ? [fields.reason] : []));
    expect(reported.at(-1) ?? 'accepted').toBe(expected);
    await gate.close();
  });
});

describe('how changes become known', () => {
  const changesOf = ({ gate }: GateApp) => gate.status().issuers[0]?.generations?.changes;

  it.each([
    ['a source', { generationSource: memoryGenerations() }, 'source'],
    ['a claim that is named', { generationClaim: 'generation' }, 'tokens'],
    ['the time of issue of all tokens', { generationClaim: 'iat' }, 'not at all'],
    ['no option', {}, 'not at all'],
  ])('with %s', (_what, options, expected) => {
    expect(changesOf(gateApp(options))).toBe(expected);
  });

  it('is by tokens once a stamped one was accepted, and a warning once where one was accepted by iat', async () => {
    const through = gateApp();
    for (const _ of [1, 2]) await through.get(token({ claims: BY_IAT })).expect(200);
    expect(through.log.entries).toMatchObject([
      { level: 'warn', message: expect.stringContaining('a change of a credential is not noticed') as string },
    ]);
    expect(changesOf(through)).toBe('not at all');
    await through.get(token()).expect(200);
    expect(changesOf(through)).toBe('tokens');
  });

  it('is an error where the first floor is not a time in ms, and tokens were accepted by iat', async () => {
    const generationSource = memoryGenerations({ clock: () => NOW_MS });
    const through = gateApp({ generationSource });
    await through.get(token({ claims: BY_IAT })).expect(200);
    expect(through.log.entries).toEqual([]);
    await generationSource.append([
      ['another', 1],
      ['a-third', 2],
    ]);
    await settle();
    const problem = expect.stringMatching(/not a time in ms.*generationClaim/) as string;
    expect(through.log.entries).toMatchObject([{ level: 'error', message: problem }]);
    expect(through.gate.status().issuers).toMatchObject([{ generations: { problem } }]);
    await through.gate.close();
  });
});
