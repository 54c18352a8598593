/**
 * How long a change takes to reach every resource server: from the moment at which `publish` (or the response of the token
 * server) resolved until the last of 8 processes refuses the old token. `npm run bench:generations`.
 *
 * Options: `--changes N` (1000), `--servers N` (8), `--engines redis,postgres,http`.
 */
import { parseArgs } from 'node:util';
import { createTestIssuer } from '../../src/testing/index';
import type { TestIssuer } from '../../src/testing/index';
import { median, percentile, round, table } from '../stats';
import { ENGINE_NAMES, startEngine } from './engines';
import type { Engine } from './engines';
import { startFleet } from './fleet';
import type { Fleet } from './fleet';
import { preciseNow } from './messages';

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '1000' },
    servers: { type: 'string', default: '8' },
    engines: { type: 'string', default: ENGINE_NAMES.join(',') },
  },
});
const CHANGES = Number(values.changes);
const SERVERS = Number(values.servers);
/** With the hint channel cut off a change waits for the next poll, so fewer of them are enough. */
const POLL_MS = 1_000;
const POLLED_CHANGES = Math.ceil(CHANGES / 50);

async function main(): Promise<void> {
  const rows = [];
  for (const name of values.engines.split(',')) {
    const engine = await startEngine(name);
    rows.push(await measure(engine, true, CHANGES), await measure(engine, false, POLLED_CHANGES));
    await engine.stop();
  }
  console.log(`\n${SERVERS} resource-server processes, ms from \`publish\` resolved to the last process refusing\n`);
  console.log(table(['source', 'hints', 'changes', 'p50', 'p99', 'max'], rows));
}

async function measure(engine: Engine, hints: boolean, changes: number): Promise<(string | number)[]> {
  const issuer = createTestIssuer();
  const { clock: _clock, ...gate } = issuer.options;
  const fleet = await startFleet({ servers: SERVERS, url: engine.url, hints, pollMs: hints ? 5_000 : POLL_MS, gate });
  const latencies: number[] = [];
  for (let index = 0; index < changes; index++) {
    latencies.push(await oneChange(engine, fleet, issuer, index, `${hints ? 'hinted' : 'polled'}-${index}`));
  }
  fleet.stop();
  const channel = hints ? 'on' : `cut off, poll every ${POLL_MS}`;
  const figures = [median(latencies), percentile(latencies, 0.99), Math.max(...latencies)].map(round);
  console.error(`${engine.name}, hints ${channel}: ${figures.join(' / ')} ms`);
  return [engine.name, channel, changes, ...figures];
}

async function oneChange(
  engine: Engine,
  fleet: Fleet,
  issuer: TestIssuer,
  index: number,
  clientId: string,
): Promise<number> {
  const generation = await engine.register(clientId);
  await fleet.accept(index, issuer.token({ clientId, generation }));
  await engine.change(clientId);
  const published = preciseNow();
  return Math.max(0, (await fleet.refused(index)) - published);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
