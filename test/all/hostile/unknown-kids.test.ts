import type { AuthError } from '../../../src/gate';
import { amount } from '../../support/amount';
import { A, B, header, noFault, sourceWith } from '../../gate/token/keys/remote-source';

const TIMES = amount(5_000, 100_000);
const MINUTES = amount(1.2, 2);

it(`one unknown kid that is sent ${TIMES} times costs one fetch, while a known key is cached`, async () => {
  const { find, fetches, respond } = await sourceWith(A);
  const begun = fetches.length;
  const inParallel = Array.from({ length: TIMES / 2 }, () => find('nowhere'));
  await respond(A);
  const reasons = new Set(await Promise.all(inParallel));
  for (let times = TIMES / 2; times < TIMES; times++) reasons.add(await find('nowhere'));
  expect(reasons).toEqual(new Set(['unknown_key']));
  expect(await find('a')).toBe('a');
  expect(fetches.length - begun).toBe(1);
});

it(`one unknown kid in ${TIMES} tokens that were issued just now costs two fetches, and then 429`, async () => {
  const { find, fetches, time, respond } = await sourceWith(A);
  const begun = fetches.length;
  const issuedNow = (): number => Math.floor(time.clock() / 1000);
  const reasons: unknown[] = [];
  for (let asked = 0; asked < 2; asked++) {
    const inParallel = Array.from({ length: TIMES / 4 }, () => find('nowhere', issuedNow));
    await respond(A);
    reasons.push(...new Set(await Promise.all(inParallel)));
  }
  expect(reasons).toEqual(['unknown_key', 'unknown_key']);
  const later = new Set<unknown>();
  for (let times = TIMES / 2; times < TIMES; times++) later.add(await find('nowhere', issuedNow));
  expect(later).toEqual(new Set(['too_many_unknown_keys']));
  expect(await find('a')).toBe('a');
  expect(fetches.length - begun).toBe(2);
});

it(`${TIMES} different unknown kids cost two fetches, while a known key is cached`, async () => {
  const { find, fetches, respond } = await sourceWith(A);
  const begun = fetches.length;
  const reasons: unknown[] = [];
  for (const id of ['first', 'second']) {
    const asked = find(id);
    await respond(A);
    reasons.push(await asked);
  }
  expect(reasons).toEqual(['unknown_key', 'unknown_key']);
  const others = new Set<unknown>();
  for (let times = 2; times < TIMES; times++) others.add(await find(`random-${times}`));
  expect(others).toEqual(new Set(['too_many_unknown_keys']));
  expect(await find('a')).toBe('a');
  expect(fetches.length - begun).toBe(2);
});

it('a rotation during 500 random kids per second refuses no token of the new key as 401, and is noticed within 6 s', async () => {
  const { keys, find, fetches, time, respond } = await sourceWith(A);
  const [RESPONSE_MS, ROTATED_AT_MS, STEP_MS] = [100, 62_300, 20];
  const fetchedAt: number[] = [];
  const refused = new Set<unknown>();
  const waiting: Promise<void>[] = [];
  let retryAtMs = ROTATED_AT_MS;
  let acceptedAtMs: number | undefined;
  let handled = fetches.length;

  /** The client with a token of the new key retries when Retry-After says so. */
  async function callWithNewKey(atMs: number): Promise<void> {
    try {
      await keys.find(header('b'), noFault);
      acceptedAtMs ??= time.clock() - startMs;
    } catch (error) {
      const { reason, retryAfterSeconds } = error as AuthError;
      refused.add(reason);
      retryAtMs = atMs + retryAfterSeconds * 1_000;
    }
  }

  const startMs = time.clock();
  for (let ms = 0; ms < MINUTES * 60_000; ms += STEP_MS) {
    for (let index = 0; index < 10; index++) void find(`random-${ms}-${index}`);
    if (ms % 1_000 === 0) expect(await find('a')).toBe('a');
    if (acceptedAtMs === undefined && ms >= retryAtMs) {
      retryAtMs = Infinity;
      waiting.push(callWithNewKey(ms));
    }
    if (fetches.length > handled) {
      handled = fetches.length;
      fetchedAt.push(ms);
      time.schedule(() => void respond(A, ...(ms >= ROTATED_AT_MS ? [B] : [])), RESPONSE_MS);
    }
    await time.advance(STEP_MS);
  }
  await Promise.all(waiting);
  expect([...refused]).toEqual(['too_many_unknown_keys']);
  expect((acceptedAtMs ?? Infinity) - ROTATED_AT_MS).toBeLessThan(6_000);
  const inMinuteFrom = (start: number): number => fetchedAt.filter((ms) => ms >= start && ms < start + 60_000).length;
  expect(Math.max(...fetchedAt.map(inMinuteFrom))).toBeLessThanOrEqual(14);
  expect(Math.max(...fetchedAt.map(inMinuteFrom))).toBeGreaterThan(10);
});
