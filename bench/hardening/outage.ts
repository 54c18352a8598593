import { newKey } from '../../test/support/keys';
import { remoteGate, STALE_MS, TTL_MS } from '../../test/support/remote-gate';
import type { RemoteGate } from '../../test/support/remote-gate';
import { table } from '../stats';
import type { Suite } from './suite';

/** An issuer that is away, with time that is injected. */
export const outage: Suite = {
  about: 'the issuer is down (injected clock): one request a second for known keys, then past the bound, then back',
  defaults: { minutes: 10 },
  async run({ minutes = 0 }) {
    const key = newKey('ES256', 'a');
    const through = await remoteGate([key]);
    await through.gate.ready();
    await through.server.stop();
    const down = await askEverySecond(through, minutes * 60, () => through.statusWith(key));
    const fetches = (through.gate.status().issuers[0]?.keys.fetches ?? 0) - 1;

    await through.pass(TTL_MS + STALE_MS);
    const past = await askEverySecond(through, 60, () => through.statusWith(key));

    await through.server.start();
    let recoveredAfter = 0;
    while ((await through.statusWith(key)) !== 200) {
      await through.pass(1_000);
      recoveredAfter++;
    }
    await through.stop();
    return table(
      ['case', 'requests', 'responses', 'remark'],
      [
        [`down for ${minutes} minutes`, minutes * 60, text(down), `${fetches} attempts to fetch the key set`],
        ['down past the bound', 60, text(past), 'never 401'],
        ['back again', recoveredAfter + 1, '200', `after ${recoveredAfter} s; the longest back-off step is 30 s`],
      ],
    );
  },
};

async function askEverySecond(
  through: RemoteGate,
  seconds: number,
  ask: () => Promise<number>,
): Promise<ReadonlyMap<number, number>> {
  const responses = new Map<number, number>();
  for (let second = 0; second < seconds; second++) {
    const status = await ask();
    responses.set(status, (responses.get(status) ?? 0) + 1);
    await through.pass(1_000);
  }
  return responses;
}

function text(responses: ReadonlyMap<number, number>): string {
  return [...responses].map(([status, count]) => `${count} × ${status}`).join(', ');
}
