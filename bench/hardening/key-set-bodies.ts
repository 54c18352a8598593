import { keyFetcher } from '../../src/token/keys/fetch-keys';
import { keyRefresh } from '../../src/token/keys/key-refresh';
import { systemClock, systemSchedule } from '../../src/core/clock';
import { endless, faultServer, sized } from '../../test/all/faults/fault-server';
import type { Fault } from '../../test/all/faults/fault-server';
import { table } from '../stats';
import { megabytes } from './suite';
import type { Suite } from './suite';

const TIMEOUT_MS = 5_000;
const silent = { info() {}, warn() {}, error() {} };

/** What an unusable key set costs. */
export const keySetBodies: Suite = {
  about: 'a key set response of many MB, and one that drips',
  defaults: { megabytes: 64 },
  async run({ megabytes: size = 0 }) {
    const rows = [
      await cost(`${size} MB`, sized(size * 1_048_576)),
      await cost('a byte every 10 ms', endless('HTTP/1.1 200 OK\r\n\r\n', Buffer.from(' '), 10)),
      await cost('never a byte', () => {}),
    ];
    return table(
      ['response', 'ms until it is given up', 'MB taken by the client', 'resident memory, MB more at most'],
      rows,
    );
  },
};

async function cost(name: string, fault: Fault): Promise<(string | number)[]> {
  const server = await faultServer(fault);
  const fetchKeys = keyFetcher({
    issuer: server.origin,
    authUrl: server.origin,
    jwksUri: `${server.origin}/jwks`,
    checkUrl() {},
    fetch: (url, init) => fetch(url, init),
    maxBytes: 1_048_576,
    logger: silent,
  });
  // Loads jwks-rsa, which is not a cost of the response.
  await fetchKeys(AbortSignal.timeout(1)).catch(() => {});
  global.gc?.();
  const before = process.memoryUsage().rss;
  let highest = before;
  const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage().rss)), 5);
  const startedMs = performance.now();
  const keys = keyRefresh({
    issuer: server.origin,
    fetchKeys,
    timeoutMs: TIMEOUT_MS,
    maxAgeMs: 600_000,
    staleMs: 0,
    clock: systemClock,
    schedule: systemSchedule,
    random: Math.random,
    logger: silent,
  });
  await keys.inFlight;
  const ms = Math.round(performance.now() - startedMs);
  highest = Math.max(highest, process.memoryUsage().rss);
  clearInterval(watch);
  keys.close();
  const taken = server.bytesTaken;
  await server.stop();
  return [name, ms, megabytes(taken), megabytes(highest - before)];
}
