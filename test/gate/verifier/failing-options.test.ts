import { setImmediate as turn } from 'node:timers/promises';
import { AuthError } from '../../../src/gate';
import type { AuthenticateOptions, Gate } from '../../../src/gate';
import { startPublisher } from '../../../src/stores';
import { fakeTime, settle } from '../../support/fake-time';
import { testGate } from '../../support/gate-app';
import { ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

/** What ends a process. */
const uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => void process.off('unhandledRejection', note));

const gates: Gate[] = [];
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.close()));
  await settle();
  expect(uncaught.splice(0)).toEqual([]);
});

const broken = (): never => {
  throw new Error('broken');
};
const rejecting = (): Promise<never> => Promise.reject(new Error('broken'));

function scene(options: Partial<AuthenticateOptions> = {}) {
  const time = fakeTime(NOW_MS);
  const logger = recordingLogger();
  const gate = testGate({ clock: time.clock, schedule: time.schedule, logger, ...options });
  gates.push(gate);
  async function outcome(raw = token()): Promise<string> {
    const req = { method: 'GET', url: '/', headers: { authorization: `Bearer ${raw}` }, rawHeaders: [] };
    const error: unknown = await gate.verify(req as never).then(
      () => 'accepted',
      (caught: unknown) => caught,
    );
    return error instanceof AuthError ? error.reason : String(error);
  }
  return { time, logger, gate, outcome };
}

describe('a source of generations', () => {
  it('whose reader() throws when a hanging reader is replaced is asked again until it responds', async () => {
    let opened = 0;
    const source = {
      mark: false,
      reader() {
        opened++;
        if (opened > 1 && opened < 4) broken();
        const next = (): Promise<unknown> =>
          opened === 1 ? new Promise(() => undefined) : Promise.resolve({ changes: [], end: true });
        return { next, close: opened === 1 ? broken : () => undefined };
      },
    };
    const { time, outcome, gate } = scene({ generationSource: source as never });
    await time.advance(5_000);
    expect([opened, gate.status().ready, await outcome()]).toEqual([1, false, 'generations_unavailable']);
    await time.advance(5_000);
    expect([opened, gate.status().ready, await outcome()]).toEqual([4, true, 'accepted']);
  });

  it.each<[string, object]>([
    ['throws everywhere', { reader: broken }],
    ['rejects everywhere', { reader: () => ({ next: rejecting, close: rejecting }) }],
    ['responds with nothing', { reader: () => ({ next: () => undefined, close: broken }) }],
  ])('that %s is an outage, for the gate and for a publisher', async (_what, methods) => {
    const source = { mark: false, append: broken, close: rejecting, ...methods };
    const { time, logger, outcome } = scene({ generationSource: source as never });
    const { clock, schedule } = time;
    const changes = (): Iterable<never> => broken();
    const publisher = startPublisher({ source: source as never, changes, clock, schedule, logger });
    await time.advance(60_000);
    expect(await outcome()).toBe('generations_unavailable');
    expect(publisher.status().state).toBe('failing');
    expect(await Promise.all([publisher.publish('pos-17', NOW_MS), time.advance(5_000)])).toEqual([false, undefined]);
    publisher.close();
  });
});

describe('a store', () => {
  it.each<[string, () => unknown]>([
    ['throws', broken],
    ['rejects', rejecting],
  ])('that %s: keys are fetched all the same', async (_what, fail) => {
    const keyStore = { read: fail, write: fail, load: fail, save: fail };
    const fetch = (): Promise<Response> => Promise.resolve(Response.json(jwks(testKey())));
    const { time, outcome } = scene({ keyStore, fetch, keys: undefined, jwksUri: `${ISSUER}/jwks` } as never);
    await time.advance(5_000);
    expect(await outcome()).toBe('accepted');
  });
});

describe('a logger', () => {
  it.each<[string, () => unknown]>([
    ['throws', broken],
    ['rejects', rejecting],
  ])('that %s while the issuer and the source are down changes nothing', async (_what, fail) => {
    const said = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    let isDown = true;
    const fetch = (): Promise<Response> => (isDown ? rejecting() : Promise.resolve(Response.json(jwks(testKey()))));
    const next = (): Promise<unknown> => (isDown ? rejecting() : Promise.resolve({ changes: [], end: true }));
    const logger = { info: fail, warn: fail, error: fail };
    const { time, outcome } = scene({
      ...{ logger, fetch, keys: undefined, jwksUri: `${ISSUER}/jwks` },
      generationSource: { mark: false, reader: () => ({ next, close: () => undefined }) } as never,
      onDecision: fail,
    });
    await time.advance(60_000);
    expect(await outcome()).toBe('keys_unavailable');
    isDown = false;
    await time.advance(60_000);
    expect(await outcome()).toBe('accepted');
    expect(said).toHaveBeenCalledTimes(1);
    said.mockRestore();
  });
});

describe('a clock', () => {
  it('that fails in timers ends no process, and what cannot be decided does not stay open', async () => {
    const ended: string[] = [];
    let isBroken = false;
    const clock = (): number => (isBroken ? broken() : NOW_MS);
    const fetch = (): Promise<Response> => Promise.resolve(Response.json(jwks(testKey())));
    const remote = { fetch, keys: undefined, jwksUri: `${ISSUER}/jwks` };
    const { time, logger, gate, outcome } = scene({ clock, ...remote });
    await turn();
    expect(await outcome()).toBe('accepted');
    const req = { method: 'GET', url: '/', headers: { authorization: `Bearer ${token()}` }, rawHeaders: [] };
    const auth = await gate.verify(req as never);
    gate.hold(auth!, (reason) => void ended.push(reason));
    isBroken = true;
    await time.advance(700_000);
    expect(ended).toEqual(['keys_unavailable']);
    expect(logger.at('error').map(({ message }) => message)).toContain('a held caller could not be decided');
    isBroken = false;
    expect(await outcome()).toBe('accepted');
  });
});
