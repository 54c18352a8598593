import { createTestIssuer } from '../../src/testing/index';
import { median, percentile, round, table } from '../stats';
import { startEngine } from './engines';
import type { Engine } from './engines';
import { startFleet } from './fleet';
import type { Fleet } from './fleet';
import { preciseNow } from './messages';

export interface PropagationOptions {
  readonly engines: readonly string[];
  readonly changes: number;
  readonly servers: number;
}

/** With the hint channel cut off a change waits for the next poll, so fewer of them are enough. */
const POLL_MS = 1_000;
const CHANGES_PER_POLLED = 50;

/**
 * How long a change takes to reach every resource server: from the moment at which `publish` (or the response of the token
 * server) resolved until the last process refuses the old token. Each change is followed by a bare message through the
 * same server to the same processes.
 */
export async function propagationTable({ engines, changes, servers }: PropagationOptions): Promise<string> {
  const rows = [];
  for (const name of engines) {
    const engine = await startEngine(name);
    rows.push(await measure(engine, true, changes, servers));
    rows.push(await measure(engine, false, Math.ceil(changes / CHANGES_PER_POLLED), servers));
    await engine.stop();
  }
  const head = ['source', 'hints', 'changes', 'p50', 'p99', 'max', 'bare p50', 'bare p99', 'ratio p50', 'ratio p99'];
  return `${servers} processes, ms from \`publish\` resolved to the last of them refusing\n\n${table(head, rows)}`;
}

async function measure(engine: Engine, hints: boolean, changes: number, servers: number): Promise<(string | number)[]> {
  const issuer = createTestIssuer();
  const { clock: _clock, ...gate } = issuer.options;
  const clientIds = Array.from({ length: changes }, (_, index) => `${hints ? 'hinted' : 'polled'}-${index}`);
  const generation = await engine.register(clientIds);
  const fleet = await startFleet({ servers, url: engine.url, hints, pollMs: hints ? 5_000 : POLL_MS, gate });
  const latencies: number[] = [];
  const bare: number[] = [];
  for (const [index, clientId] of clientIds.entries()) {
    await fleet.accept(index, issuer.token({ clientId, generation }));
    await engine.change(clientId);
    latencies.push(await since(preciseNow(), fleet.refused(index)));
    if (hints) bare.push(await bareMessage(engine, fleet, index));
  }
  fleet.stop();
  const channel = hints ? 'on' : `cut off, poll every ${POLL_MS / 1000} s`;
  const figures = [median(latencies), percentile(latencies, 0.99), Math.max(...latencies)];
  const bareFigures = [median(bare), percentile(bare, 0.99)];
  const ratios = bareFigures.map((value, index) => (figures[index] as number) / value);
  const cells = [...figures, ...(hints ? [...bareFigures, ...ratios] : [])].map(round);
  console.error(`${engine.name}, hints ${channel}: ${cells.join(' / ')}`);
  return [engine.name, channel, changes, ...cells, ...(hints ? [] : ['', '', '', ''])];
}

async function bareMessage(engine: Engine, fleet: Fleet, index: number): Promise<number> {
  const received = fleet.received(index);
  await engine.send(String(index));
  return since(preciseNow(), received);
}

async function since(startedMs: number, ended: Promise<number>): Promise<number> {
  return Math.max(0, (await ended) - startedMs);
}
