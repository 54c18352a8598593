import { testKey } from '../../support/keys';
import { remoteGate, REFRESH_MS, STALE_MS, TTL_MS } from '../../support/remote-gate';
import type { RemoteGate } from '../../support/remote-gate';

const [KEY, NEXT] = [testKey('ES256', 'a'), testKey('ES256', 'b')];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('the clock of the process steps', () => {
  let through: RemoteGate;
  beforeEach(async () => {
    // A generation is a time too, and this is about keys.
    through = await remoteGate([KEY], { generationClaim: false });
    await through.gate.ready();
  });
  afterEach(() => through.stop());

  it.each([
    ['a second back', -1_000],
    ['an hour back', -HOUR_MS],
    ['a year back', -365 * DAY_MS],
    ['past the age limit', TTL_MS + 1],
    ['past the stale window', TTL_MS + STALE_MS + 1],
    ['a year on', 365 * DAY_MS],
  ])('%s: the next request asks the issuer, and gets 200', async (_what, ms) => {
    through.time.step(ms);
    expect(await through.statusWith(KEY)).toBe(200);
    expect(through.server.keyFetches).toBe(2);
    expect(await through.statusWith(KEY)).toBe(200);
    expect(through.server.keyFetches).toBe(2);
  });

  it('back and on again, many times: the issuer is asked once for each step at the most', async () => {
    for (let index = 0; index < 20; index++) {
      through.time.step(index % 2 === 0 ? -HOUR_MS : HOUR_MS);
      expect(await through.statusWith(KEY)).toBe(200);
    }
    expect(through.server.keyFetches).toBeLessThanOrEqual(1 + 20);
  });

  it.each([-DAY_MS, 2 * (TTL_MS + STALE_MS)])('by %d ms while the issuer is down: 503, never 401', async (ms) => {
    await through.server.stop();
    through.time.step(ms);
    expect(await through.statusWith(KEY)).toBe(503);
    expect(await through.statusWith(NEXT)).toBe(503);
    await through.server.start();
    await through.pass(1_000);
    expect(await through.statusWith(KEY)).toBe(200);
  });

  it('back in the pause after a failure: the pause does not grow', async () => {
    await through.server.stop();
    await through.pass(REFRESH_MS);
    through.time.step(-DAY_MS);
    await through.server.start();
    await through.pass(1_000);
    expect(await through.statusWith(KEY)).toBe(200);
    expect(through.gate.status().issuers[0]?.keys).toMatchObject({ state: 'fresh' });
  });
});
