import { monitorEventLoopDelay } from 'node:perf_hooks';
import express from 'express';
import { systemClock, systemSchedule } from '../../../src/gate/core/clock';
import { logHandler } from '../../../src/gate/generation/http/handler';
import { httpGenerations } from '../../../src/gate/generation/http/log';
import type { Change } from '../../../src/gate/generation/log';
import { memoryGenerations } from '../../../src/gate/generation/memory';
import { Follower } from '../../../src/gate/generation/follower';
import { reasonOf } from '../../gate/generation/fixtures';
import { listen } from '../../support/listen';
import { recordingLogger } from '../../support/log';

const COUNT = 200_000;
const FIRST = Date.now() - 2 * COUNT;

it('200,000 changes reach a resource server over HTTP, each of them', async () => {
  const log = memoryGenerations();
  await log.append(Array.from({ length: COUNT }, (_, n): Change => [`client-${n}`, FIRST + n]));
  const handler = logHandler({ log, schedule: systemSchedule, clock: systemClock });
  const { url, close } = await listen(express().use('/generations', handler));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const logger = recordingLogger();
  const source = httpGenerations({ url });
  const started = performance.now();
  delay.enable();
  const follower = new Follower({
    issuer: 'https://login.example',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    source,
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 60_000,
    maxSilenceMs: 900_000,
    onStale: 'reject',
    ownsSource: false,
    pollMs: 5_000,
    readTimeoutMs: 5_000,
    random: Math.random,
    clock: systemClock,
    schedule: systemSchedule,
    logger,
  });
  await follower.ready();
  delay.disable();
  const tookMs = Math.round(performance.now() - started);
  // Both ends are in this process, so the longest pause of either counts, and whatever else the machine is busy with.
  console.log(`200,000 changes over HTTP: ${tookMs} ms, longest pause ${(delay.max / 1e6).toFixed(1)} ms`);

  expect(follower.status()).toMatchObject({ source: 'fresh', floors: COUNT });
  for (let n = 0; n < COUNT; n += 997) {
    expect(reasonOf(() => follower.recheck(`client-${n}`, FIRST + n - 1))).toBe('superseded');
    expect(reasonOf(() => follower.recheck(`client-${n}`, FIRST + n))).toBeUndefined();
  }
  await follower.close();
  await source.close?.();
  await close();
});
