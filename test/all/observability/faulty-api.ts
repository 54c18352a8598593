import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import express from 'express';
import { systemSchedule } from '../../../src/gate/core/clock';
import { logHandler } from '../../../src/gate/generation/http/handler';
import { memoryGenerations } from '../../../src/gate/generation';
import { AUDIENCE, token } from '../../support/issuer';
import type { Members } from '../../support/issuer';
import { keyServer } from '../../support/key-server';
import { jwks, newKey, testKey } from '../../support/keys';
import { ROOT } from '../../repository/docs/blocks';
import { startTillgate } from '../setup/tillgate';
import { COMPILED } from '../support/compiled';
import { eventually } from '../support/eventually';

/** `tillgate serve` with an issuer and a log of generations that a test can break. */
export interface FaultyApi {
  /** The kinds of requests that are sent ten times a second each. */
  traffic: readonly Traffic[];
  /** Whether the publisher moves its mark. */
  isPublishing: boolean;
  /** Stops, and starts again, the servers of keys and generations. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  stop(): Promise<void>;
}

/** Requests that the API accepts, and those that it refuses for a reason: before a superseded one its client changes. */
type Traffic = 'good' | 'forged' | 'wrong' | 'superseded';

/** Options of the API: the alerts' thresholds in time depend on them. */
export const KEYS_MAX_AGE_MS = 1_000;
export const MAX_STALENESS_MS = 4_000;

/** The recipe of docs/operations.md with another port, as a file in a folder that finds the packages. */
async function telemetry(port: number): Promise<string> {
  const page = await readFile(join(ROOT, 'docs/operations.md'), 'utf8');
  const [recipe = ''] = /^\/\/ telemetry\.mjs[^]*?(?=^```)/m.exec(page) ?? [];
  expect(recipe).toContain('port: 9464');
  const entry = pathToFileURL(join(COMPILED, 'src/gate/opentelemetry/index.js')).href;
  const path = join(COMPILED, `telemetry-${port}.mjs`);
  await writeFile(path, recipe.replace('9464', `${port}`).replace('tillgate/opentelemetry', entry));
  return path;
}

/** Starts it with the recipe for Prometheus, which serves `/metrics` on a port of 127.0.0.1. */
export async function startFaultyApi(metricsPort: number): Promise<FaultyApi> {
  const issuer = await keyServer(testKey());
  issuer.responses.set('/jwks', (res) => {
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(jwks(testKey())));
  });
  const log = memoryGenerations();
  let publishedMs = Date.now();
  const clock = (): number => (publishedMs = api.isPublishing ? Date.now() : publishedMs);
  const handler = logHandler({ log, schedule: systemSchedule, clock });
  const source = createServer(express().use('/generations', handler));
  await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
  const { port: sourcePort } = source.address() as AddressInfo;
  const tillgate = await startTillgate<{ readonly listening: string }>(
    'app',
    {
      TILLGATE_PORT: '0',
      TILLGATE_AUTH_URL: issuer.origin,
      TILLGATE_AUDIENCE: AUDIENCE,
      TILLGATE_GENERATIONS: `http://127.0.0.1:${sourcePort}`,
      TILLGATE_MAX_STALENESS_MS: `${MAX_STALENESS_MS}`,
      TILLGATE_KEYS_MAX_AGE_MS: `${KEYS_MAX_AGE_MS}`,
      TILLGATE_KEYS_STALE_MS: '0',
    },
    ['--import', await telemetry(metricsPort)],
  );

  const nowSeconds = Math.floor(Date.now() / 1000);
  const generation = Date.now() - 60_000;
  function tokenOf(claims: Members, key = testKey()): string {
    const times = { iat: nowSeconds, exp: nowSeconds + 3_600, generation };
    return token({ key, claims: { iss: issuer.origin, ...times, ...claims } });
  }
  const tokens: Readonly<Record<Traffic, string>> = {
    good: tokenOf({}),
    forged: tokenOf({}, newKey()),
    wrong: tokenOf({ aud: 'https://other.test' }),
    superseded: tokenOf({ client_id: 'kiosk' }),
  };
  async function send(kind: Traffic): Promise<number> {
    if (kind === 'superseded') await log.append([['kiosk', Date.now()]]);
    const headers = { Authorization: `Bearer ${tokens[kind]}` };
    const response = await fetch(`${tillgate.report.listening}/v1/orders`, { headers });
    await response.text();
    return response.status;
  }
  const sending = setInterval(() => api.traffic.forEach((kind) => void send(kind)), 100);

  const api: FaultyApi = {
    traffic: [],
    isPublishing: true,
    async cut() {
      await Promise.all([issuer.stop(), new Promise((resolve) => source.close(resolve).closeAllConnections())]);
    },
    async restore() {
      await Promise.all([
        issuer.start(),
        new Promise<void>((resolve) => source.listen(sourcePort, '127.0.0.1', resolve)),
      ]);
    },
    async stop() {
      clearInterval(sending);
      await tillgate.stop();
      handler.close();
      if (source.listening) await api.cut();
    },
  };
  await eventually('a good token is accepted', async () => (await send('good')) === 200);
  return api;
}
