import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { generationsFeed, httpGenerations } from '../../../src/generation';
import type { GenerationsFeed, GenerationSource } from '../../../src/generation';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, openSource, startVerifier, verdict } from './fixtures';

const CHANGES = 200;

let redis: RedisServer;
const closers: (() => Promise<unknown> | void)[] = [];

beforeAll(async () => {
  redis = await startRedis({ appendOnly: true });
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
  await redis.stop();
});

/** A relay on a port of its own, and a source that reads it. */
async function startRelay(source: GenerationSource): Promise<{ feed: GenerationsFeed; source: GenerationSource }> {
  const feed = generationsFeed({ source, maxStalenessMs: 4_000, pollMs: 500, logger: recordingLogger() });
  const server: Server = createServer(express().use('/generations', feed));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reader = httpGenerations({ url, logger: recordingLogger() });
  closers.push(async () => {
    await reader.close?.();
    await feed.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { feed, source: reader };
}

it('redis -> relay -> relay -> gate: every change arrives by hints, staleness adds up, and all of it recovers', async () => {
  const writer = await openSource(byIoredis(), redis.url);
  const first = await openSource(byIoredis(), redis.url);
  closers.push(
    () => writer.close(),
    () => first.close(),
  );
  const near = await startRelay(first.source);
  const far = await startRelay(near.source);
  const verifier = startVerifier(far.source, { maxStalenessMs: 5_000, pollMs: 500 });
  closers.push(() => verifier.close());
  await Promise.all([near.feed.ready(), far.feed.ready(), verifier.ready()]);
  expect(far.feed.status().via).toEqual([near.feed.status().name]);

  const hops: number[][] = [[], [], []];
  for (let n = 0; n < CHANGES; n++) {
    const generation = Date.now();
    const clientId = `pos-${n}`;
    const started = performance.now();
    const arrived = [near.feed, far.feed].map(async (feed, hop) => {
      while (feed.status().floors <= n) await new Promise((resolve) => setImmediate(resolve));
      hops[hop]!.push(performance.now() - started);
    });
    await writer.source.publish(clientId, generation);
    await eventually('the gate refuses', () => verdict(verifier, clientId, generation - 1) === 'superseded', 5_000);
    hops[2]!.push(performance.now() - started);
    await Promise.all(arrived);
  }
  const median = (times: number[]): string => times.sort((a, b) => a - b)[times.length >> 1]!.toFixed(1);
  console.log(`ms from publish to relay, relay, gate (median): ${hops.map(median).join(', ')}`);

  await redis.kill();
  await eventually('the gate refuses', () => verdict(verifier, 'other', 1) === 'generations_unavailable');
  expect(verdict(verifier, 'pos-0', 1)).toBe('superseded');
  await redis.start();
  await eventually('the gate accepts', () => verdict(verifier, 'other', 1) === 'admitted');
  expect(near.feed.status().floors).toBe(CHANGES);
});
