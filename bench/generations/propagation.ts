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

/**
 * How long a change takes to reach every resource server: from the moment at which it is sent to the log (or the token
 * server) until the last process refuses the old token. Each change is followed by a bare message through the
 * same server to the same processes.
 */
export async function propagationTable({ engines, changes, servers }: PropagationOptions): Promise<string> {
  const rows = [];
  for (const name of engines) {
    const engine = await startEngine(name);
    rows.push(await measure(engine, changes, servers));
    await engine.stop();
  }
  const head = ['source', 'changes', 'p50', 'p99', 'max', 'bare p50', 'bare p99', 'ratio p50', 'ratio p99'];
  return `${servers} processes, ms from a change being sent to the last of them refusing\n\n${table(head, rows)}`;
}

async function measure(engine: Engine, changes: number, servers: number): Promise<(string | number)[]> {
  const issuer = createTestIssuer();
  const { clock: _clock, schedule: _schedule, generationSource: _source, ...gate } = issuer.options;
  const clientIds = Array.from({ length: changes }, (_, index) => `client-${index}`);
  const generation = await engine.register(clientIds);
  const fleet = await startFleet({ servers, url: engine.url, gate });
  const latencies: number[] = [];
  const bare: number[] = [];
  for (const [index, clientId] of clientIds.entries()) {
    await fleet.accept(index, issuer.token({ clientId, generation }));
    const startedMs = preciseNow();
    await engine.change(clientId);
    latencies.push(await since(startedMs, fleet.refused(index)));
    bare.push(await bareMessage(engine, fleet, index));
  }
  fleet.stop();
  const bareFigures = [median(bare), percentile(bare, 0.99)];
  const figures = [median(latencies), percentile(latencies, 0.99)];
  const ratios = figures.map((value, index) => value / (bareFigures[index] as number));
  const cells = [...figures, Math.max(...latencies), ...bareFigures, ...ratios].map(round);
  console.error(`${engine.name}: ${cells.join(' / ')}`);
  return [engine.name, changes, ...cells];
}

async function bareMessage(engine: Engine, fleet: Fleet, index: number): Promise<number> {
  const received = fleet.received(index);
  await engine.send(String(index));
  return since(preciseNow(), received);
}

async function since(startedMs: number, ended: Promise<number>): Promise<number> {
  return Math.max(0, (await ended) - startedMs);
}
