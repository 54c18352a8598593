import { keyServer } from '../../test/support/key-server';
import { newKey } from '../../test/support/keys';
import type { TestKey } from '../../test/support/keys';
import { paced, shoot, statuses } from '../../test/all/support/load';
import type { Outcome } from '../../test/all/support/load';
import { median, percentile, round, table } from '../stats';
import { startApiProcess } from './api-process';
import { AUDIENCE, tokenNow, withToken } from './real-tokens';
import type { Suite } from './suite';

/** Rotations without a refused request, and a start without a stampede. */
export const rotation: Suite = {
  about: 'two rotations within 30 s under a constant load, each token new; 1,000 concurrent cold requests',
  defaults: { rate: 500, seconds: 30, cold: 1_000 },
  async run({ rate = 0, seconds = 0, cold = 0 }) {
    const head = ['case', 'requests', '200', 'refused', 'key set fetches', 'p50 ms', 'p99 ms', 'max ms'];
    return table(head, [await coldStart(cold), await twoRotations(rate, seconds)]);
  },
};

async function coldStart(requests: number): Promise<(string | number)[]> {
  const key = newKey('ES256', 'a');
  const server = await keyServer(key);
  const api = await startApiProcess(server.origin, AUDIENCE);
  const tokens = Array.from({ length: requests }, () => tokenNow(server.origin, { key }));
  const outcomes = await Promise.all(tokens.map((bearer) => shoot(withToken(api.orders, bearer))));
  return row(`${requests} concurrent cold requests`, outcomes, api, server);
}

/** At a third and at two thirds of the time the issuer signs with a new key, and publishes it at that moment. */
async function twoRotations(rate: number, seconds: number): Promise<(string | number)[]> {
  const keys = ['a', 'b', 'c'].map((kid) => newKey('ES256', kid)) as [TestKey, TestKey, TestKey];
  const server = await keyServer(keys[0]);
  const api = await startApiProcess(server.origin, AUDIENCE);
  await shoot(withToken(api.orders, tokenNow(server.origin, { key: keys[0] })));
  const total = rate * seconds;
  let sent = 0;
  const outcomes = await paced(rate, total, () => {
    const phase = Math.min(2, Math.floor((3 * sent++) / total));
    if (server.responses.get('/jwks') !== undefined) server.publish(...keys.slice(0, phase + 1));
    return withToken(api.orders, tokenNow(server.origin, { key: keys[phase] ?? keys[0] }));
  });
  return row(`2 rotations in ${seconds} s at ${rate}/s`, outcomes, api, server);
}

async function row(
  name: string,
  outcomes: readonly Outcome[],
  api: Awaited<ReturnType<typeof startApiProcess>>,
  server: Awaited<ReturnType<typeof keyServer>>,
): Promise<(string | number)[]> {
  const fetches = server.keyFetches;
  const ok = statuses(outcomes)[200] ?? 0;
  const ms = outcomes.map((outcome) => outcome.ms);
  api.stop();
  await server.stop();
  const times = [median(ms), percentile(ms, 0.99), percentile(ms, 1)].map(round);
  return [name, outcomes.length, ok, outcomes.length - ok, fetches, ...times];
}
