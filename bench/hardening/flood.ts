import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { keyServer } from '../../test/support/key-server';
import { jwks, newKey } from '../../test/support/keys';
import { paced, statuses } from '../../test/all/support/load';
import type { Outcome } from '../../test/all/support/load';
import { median, percentile, round, table } from '../stats';
import { startApiProcess } from './api-process';
import type { ApiFigures } from './api-process';
import type { FloodOrder, FloodOutcome } from './flooder';
import { AUDIENCE, tokenNow, withToken } from './real-tokens';
import { megabytes } from './suite';
import type { Suite } from './suite';

/** A flood of made-up key ids beside good requests. */
export const flood: Suite = {
  about: 'requests with random kids of 1,000 characters beside good ones, by turns with the same good ones alone',
  defaults: { requests: 100_000, rate: 500, good: 100, turns: 10 },
  run: (options) => measure('kid', options),
};

/** A flood of tokens with a published key id, each of which costs a signature check. */
export const forged: Suite = {
  about: 'requests with forged signatures beside good new tokens, by turns with the same good ones alone',
  defaults: { requests: 100_000, rate: 10_000, good: 200, turns: 10 },
  run: (options) => measure('signature', options),
};

async function measure(
  wrong: FloodOrder['wrong'],
  { requests = 0, rate = 0, good = 0, turns = 0 }: Readonly<Record<string, number>>,
): Promise<string> {
  const key = newKey('ES256', 'a');
  const server = await keyServer(key);
  const fetchedAt: number[] = [];
  server.responses.set('/jwks', (res) => {
    fetchedAt.push(performance.now());
    res.end(JSON.stringify(jwks(key)));
  });
  const api = await startApiProcess(server.origin, AUDIENCE);
  const flooder = startFlooder();
  const seconds = Math.max(1, Math.round(requests / rate));
  const goodLoad = (forSeconds = seconds / turns): Promise<readonly Outcome[]> =>
    paced(good, Math.round(good * forSeconds), () => withToken(api.orders, tokenNow(server.origin, { key })));

  // Warm: what is compiled late must not count for one side only.
  await goodLoad(5);
  const before = await api.figures();
  const fetchesBefore = fetchedAt.length;
  const pattern = tokenNow(server.origin, { key });
  const quiet: Outcome[] = [];
  const disturbed: Outcome[] = [];
  const bad: FloodOutcome[] = [];
  // By turns: what else the machine does meanwhile slows both down.
  const cpuMs = { quiet: 0, flood: 0 };
  for (let turn = 0; turn < turns; turn++) {
    const { cpuMs: begun } = await api.figures();
    quiet.push(...(await goodLoad()));
    const { cpuMs: between } = await api.figures();
    const [flooding, beside] = await Promise.all([
      flooder.flood({ url: api.orders, wrong, pattern, perSecond: rate, requests: requests / turns }),
      goodLoad(),
    ]);
    bad.push(...flooding);
    disturbed.push(...beside);
    cpuMs.quiet += between - begun;
    cpuMs.flood += (await api.figures()).cpuMs - between;
  }
  const after = await api.figures();
  flooder.stop();
  api.stop();
  await server.stop();
  return report({ quiet, bad, disturbed, cpuMs, before, after, seconds, fetchedAt: fetchedAt.slice(fetchesBefore) });
}

/** The process that floods. */
function startFlooder(): { flood(order: FloodOrder): Promise<readonly FloodOutcome[]>; stop(): void } {
  const child = fork(join(__dirname, 'flooder.ts'), { execArgv: ['--import', 'tsx'] });
  const stop = (): void => void child.kill();
  process.once('exit', stop);
  return {
    async flood(order) {
      const response = once(child, 'message') as Promise<[readonly FloodOutcome[]]>;
      child.send(order);
      return (await response)[0];
    },
    stop,
  };
}

interface Measured {
  readonly quiet: readonly Outcome[];
  readonly bad: readonly FloodOutcome[];
  readonly disturbed: readonly Outcome[];
  /** Processor time of the API in the turns of each kind. */
  readonly cpuMs: { readonly quiet: number; readonly flood: number };
  readonly before: ApiFigures;
  readonly after: ApiFigures;
  readonly seconds: number;
  /** Moments of the key set fetches, quiet turns included. */
  readonly fetchedAt: readonly number[];
}

function report({ quiet, bad, disturbed, cpuMs, before, after, seconds, fetchedAt }: Measured): string {
  const row = (name: string, outcomes: readonly FloodOutcome[]): (string | number)[] => {
    const ms = outcomes.map((outcome) => outcome.ms);
    const times = [median(ms), percentile(ms, 0.99), percentile(ms, 1)].map(round);
    return [name, outcomes.length, JSON.stringify(statuses(outcomes)).replaceAll('"', ''), ...times];
  };
  const rows = [row('good, quiet', quiet), row('good, in the flood', disturbed), row('flood', bad)];
  return [
    table(['requests', 'number', 'responses', 'p50 ms', 'p99 ms', 'max ms'], rows),
    '',
    table(
      ['flood', 'figure'],
      [
        ['seconds of flood', seconds],
        ['key set fetches', fetchedAt.length],
        ['most of them within 30 s', mostWithin(30_000 - JITTER_MS, fetchedAt)],
        ['processor ms for a good request', round(cpuMs.quiet / quiet.length)],
        ['processor ms for one of the flood', round((cpuMs.flood - cpuMs.quiet) / bad.length)],
        ['heap after it, MB more', megabytes(after.heapUsed - before.heapUsed)],
        ['resident memory after it, MB more', megabytes(after.rss - before.rss)],
      ],
    ),
  ].join('\n');
}

/** Fetches are counted where they arrive, which takes one of them longer than another. */
const JITTER_MS = 200;

function mostWithin(ms: number, moments: readonly number[]): number {
  return Math.max(0, ...moments.map((from) => moments.filter((at) => at >= from && at < from + ms).length));
}
