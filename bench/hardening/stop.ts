import { busy } from '../../test/all/support/load';
import type { Outcome } from '../../test/all/support/load';
import { round, table } from '../stats';
import { startDevServers } from './dev-servers';
import { pause } from './suite';
import type { Suite } from './suite';

/** SIGTERM while requests keep coming. */
export const stop: Suite = {
  about: 'SIGTERM under load: connections that are never idle',
  defaults: { rounds: 20, connections: 50, seconds: 2 },
  async run({ rounds = 0, connections = 0, seconds = 0 }) {
    const all = { requests: 0, after: 0, dropped: 0, neverAccepted: 0, longestMs: 0 };
    for (let round = 0; round < rounds; round++) {
      const servers = await startDevServers();
      const order = await servers.orderRequest();
      const load = busy(connections, () => order);
      await pause(seconds * 1000);
      const stoppedAt = performance.now();
      await servers.stop();
      all.longestMs = Math.max(all.longestMs, performance.now() - stoppedAt);
      const outcomes = await load.stop();
      const isLate = ({ startedAt }: Outcome): boolean => startedAt > stoppedAt;
      all.requests += outcomes.length;
      all.after += outcomes.filter((outcome) => isLate(outcome) && outcome.status === 200).length;
      all.dropped += outcomes.filter(
        (outcome) => outcome.status !== 200 && (outcome.status !== 0 || wasAccepted(outcome, stoppedAt)),
      ).length;
      all.neverAccepted += outcomes.filter(
        (outcome) => outcome.status === 0 && !wasAccepted(outcome, stoppedAt),
      ).length;
    }
    return table(
      [
        'SIGTERMs',
        'requests',
        '200 after the signal',
        'dropped',
        'connections not accepted any more',
        'longest stop, ms',
      ],
      [[rounds, all.requests, all.after, all.dropped, all.neverAccepted, round(all.longestMs)]],
    );
  },
};

/** A new connection that was refused or reset after the signal waited in the operating system and never came to the server. */
function wasAccepted({ reused, startedAt }: Outcome, stoppedAt: number): boolean {
  return reused || startedAt < stoppedAt;
}
