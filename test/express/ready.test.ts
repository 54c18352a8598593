import type { GenerationSource } from '../../src/generation';
import type { Fetch } from '../../src/token/http';
import { fakeTime, settle } from '../support/fake-time';
import { gateApp } from '../support/gate-app';
import { AUDIENCE, ISSUER, NOW_MS } from '../support/issuer';
import { jwks, testKey } from '../support/keys';

const JWKS_URI = 'https://login.test/jwks';
const down: Fetch = () => Promise.reject(Object.assign(new TypeError('secret'), { cause: { code: 'ECONNREFUSED' } }));

/** A source whose reads are as given. */
const readBy = (next: () => Promise<never>): GenerationSource => ({
  mark: false,
  reader: () => ({ next, close() {} }),
});

describe('ready()', () => {
  it('resolves once there are keys, also where no generations are checked', async () => {
    let publish = (): void => {};
    const published = new Promise<void>((resolve) => (publish = resolve));
    const fetch: Fetch = () => published.then(() => Response.json({ keys: [testKey().jwk] }));
    const schedule = (): { cancel(): void } => ({ cancel() {} });
    const { gate } = gateApp({ jwksUri: JWKS_URI, fetch, generationClaim: false, schedule });
    let isReady = false;
    const ready = gate.ready().then(() => (isReady = true));
    for (let turns = 0; turns < 5; turns++) await settle();
    expect(isReady).toBe(false);
    publish();
    await ready;
    expect(gate.status().ready).toBe(true);
    await gate.close();
  });

  it('with timeoutMs resolves where it is in time, and leaves no timer', async () => {
    const time = fakeTime(NOW_MS);
    const { gate } = gateApp({ clock: time.clock, schedule: time.schedule });
    await gate.ready({ timeoutMs: 1 });
    expect(time.pending).toBe(0);
    await gate.close();
  });

  it('with timeoutMs rejects when that is over, and names all that is not available, and why', async () => {
    const time = fakeTime(NOW_MS);
    const good = { audience: AUDIENCE, keys: jwks(testKey()) };
    const { gate } = gateApp({
      ...{ fetch: down, clock: time.clock, schedule: time.schedule },
      issuers: [
        { issuer: 'https://good.test', ...good },
        { issuer: ISSUER, audience: AUDIENCE, jwksUri: JWKS_URI },
        {
          issuer: 'https://other.test',
          ...good,
          generationSource: readBy(() => Promise.reject(new RangeError('secret'))),
        },
        { issuer: 'https://silent.test', ...good, generationSource: readBy(() => new Promise<never>(() => {})) },
      ],
    });
    const outcome = gate.ready({ timeoutMs: 4_000 }).then(
      () => 'ready',
      (error: unknown) => String(error),
    );
    await time.advance(3_999);
    expect(await Promise.race([outcome, settle()])).toBeUndefined();
    await time.advance(1);
    expect(await outcome).toBe(
      'Error: the gate is not ready after 4000 ms: it has not read ' +
        `the keys of ${ISSUER} (${JWKS_URI} could not be fetched (ECONNREFUSED)) ` +
        'and the generations of https://other.test (RangeError) and the generations of https://silent.test',
    );
    await gate.close();
  });

  it('can be called again after it has rejected: the gate goes on trying', async () => {
    const time = fakeTime(NOW_MS);
    const health = { down: true };
    const fetch: Fetch = (...args) => (health.down ? down(...args) : Promise.resolve(Response.json(jwks(testKey()))));
    const { gate } = gateApp({ jwksUri: JWKS_URI, fetch, clock: time.clock, schedule: time.schedule });
    const rejected = expect(gate.ready({ timeoutMs: 10 })).rejects.toThrow('the gate is not ready after 10 ms');
    await time.advance(10);
    await rejected;
    health.down = false;
    const ready = gate.ready({ timeoutMs: 5_000 });
    await time.advance(1_000);
    await ready;
    await gate.close();
  });

  it.each<[object, string]>([
    [{ timeoutMs: '5' }, 'ready(): option "timeoutMs" must be a number of ms from 1 to 9007199254740991, got "5"'],
    [{ timeoutMs: 0 }, 'ready(): option "timeoutMs" must be a number of ms from 1 to 9007199254740991, got 0'],
    [{ timeout: 5 }, 'ready(): unknown option "timeout"; did you mean "timeoutMs"?'],
  ])('refuses %j', async (options, message) => {
    const { gate } = gateApp();
    await expect(gate.ready(options)).rejects.toThrow(new TypeError(message));
    await gate.close();
  });
});
