import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import express from 'express';
import { feedOf } from '../../../src/auth-server/generations/feed';
import type { Store } from '../../../src/auth-server/storage/store';
import { systemClock, systemSchedule } from '../../../src/core/clock';
import { feedHandler } from '../../../src/generation/feed/handler';
import { httpGenerations } from '../../../src/generation/http/source';
import { generationVerifier } from '../../../src/generation/verifier';
import { reasonOf } from '../../generation/fixtures';
import { recordingLogger } from '../../support/log';

const COUNT = 1_000_000;
const FIRST = Date.now();

it('a million floors reach a resource server over HTTP, each of them', async () => {
  const server = createServer(express().use('/generations', feedHandler(feedOf(storeOf(COUNT)), systemSchedule)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const logger = recordingLogger();
  const feed = httpGenerations({ url, logger });
  const started = performance.now();
  delay.enable();
  const verifier = generationVerifier({
    issuer: 'https://login.example',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    learn: true,
    // Without the stream: there is nothing to hint at.
    source: { read: (sinceMs, takePage) => feed.read(sinceMs, takePage) },
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 60_000,
    onStale: 'reject',
    clock: systemClock,
    schedule: systemSchedule,
    logger,
  });
  await verifier.ready();
  delay.disable();
  const tookMs = Math.round(performance.now() - started);
  // Both ends are in this process, so the longest pause of either counts, and whatever else the machine is busy with.
  console.log(`1,000,000 floors over HTTP: ${tookMs} ms, longest pause ${(delay.max / 1e6).toFixed(1)} ms`);

  expect(verifier.status()).toMatchObject({ source: 'fresh', floors: COUNT });
  for (let n = 0; n < COUNT; n += 997) {
    expect(reasonOf(() => verifier.recheck(`client-${n}`, FIRST + n - 1))).toBe('superseded');
    expect(reasonOf(() => verifier.recheck(`client-${n}`, FIRST + n))).toBeUndefined();
  }
  await verifier.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** A store as the feed sees it. */
function storeOf(count: number): Store {
  const clients = new Map<string, object>();
  for (let n = 0; n < count; n++) {
    const clientId = `client-${n}`;
    clients.set(clientId, { clientId, generation: FIRST + n, movedAt: FIRST });
  }
  const state = { revision: FIRST, clients, tombstones: new Map() };
  return { state, nowMs: () => Date.now() } as unknown as Store;
}
