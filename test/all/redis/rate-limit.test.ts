import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';
import { eventually } from '../support/eventually';
import { shoot } from '../support/load';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

const AUDIENCE = 'https://api.test';
const LIMIT = 10;

let redis: RedisServer;
let dataDir: string;
let tokens: RunningTillgate<DevReport>;
type Api = { readonly listening: string };
let first: RunningTillgate<Api>;
let second: typeof first;

/** Two processes that serve the same API, and a token server. */
beforeEach(async () => {
  redis = await startRedis();
  dataDir = await mkdtemp(join(tmpdir(), 'tillgate-limits-'));
  tokens = await startTillgate('dev', {
    ...{ TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_AUDIENCE: AUDIENCE, TILLGATE_DATA_DIR: dataDir },
  });
  const shared = {
    TILLGATE_PORT: '0',
    TILLGATE_AUTH_URL: tokens.report.auth_url,
    TILLGATE_AUDIENCE: AUDIENCE,
    // Nobody publishes here: Redis is for the counts.
    TILLGATE_GENERATIONS: `${redis.url}?mark=off`,
    TILLGATE_RATE_LIMIT: `${LIMIT}/m`,
  };
  [first, second] = await Promise.all([startTillgate<Api>('app', shared), startTillgate<Api>('app', shared)]);
});
afterEach(async () => {
  await second?.stop();
  await first?.stop();
  await tokens?.stop();
  await redis.stop();
  await rm(dataDir, { recursive: true });
});

async function tokenOf(clientId: string): Promise<string> {
  const { client_secret = '' } = tokens.report.clients.find(({ client_id }) => client_id === clientId) ?? {};
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret, scope: 'orders:read' };
  const response = await fetch(`${tokens.report.auth_url}/connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}

/** Status and what is left of the quota. */
async function call(address: string, token: string): Promise<readonly [status: number, left: number]> {
  const { status, headers } = await shoot({
    url: `${address}/v1/orders`,
    headers: { Authorization: `Bearer ${token}` },
  });
  return [status, Number(/r=(\d+)/.exec(String(headers['ratelimit']))?.[1])];
}

/** Clients are counted by issuer and id. */
function keyOf(clientId: string): string {
  return `tillgate:rate-limit:${AUDIENCE} ${JSON.stringify([tokens.report.auth_url, clientId])}`;
}

/** Levels of the lines of each process about its quota. Redis may be too slow once where the machine does other work as well. */
function levels(): string[] {
  return [first, second].map((process) => {
    const lines = process
      .log()
      .split('\n')
      .filter((line) => line.includes('rate limit:'));
    return lines.map((line) => (JSON.parse(line) as { level: string }).level).join(' ');
  });
}

it('two processes share one quota; without Redis nothing is limited, without a 5xx; with Redis back they share again', async () => {
  const [one, two] = [first.report.listening, second.report.listening];
  const kiosk = await tokenOf('kiosk');
  for (let sent = 1; sent <= LIMIT; sent++) {
    expect(await call(sent % 2 === 0 ? one : two, kiosk)).toEqual([200, LIMIT - sent]);
  }
  expect((await call(one, kiosk))[0]).toBe(429);
  expect((await call(two, kiosk))[0]).toBe(429);
  expect(await redis.command('GET', keyOf('kiosk'))).toBe(String(LIMIT + 2));
  expect(Number(await redis.command('PTTL', keyOf('kiosk')))).toBeGreaterThan(0);

  await redis.kill();
  for (const address of [one, two]) expect((await call(address, kiosk))[0]).toBe(200);
  await eventually('the lines of both have arrived', () => levels().every((said) => said.endsWith('warn')));
  // One line per outage.
  const down = expect.stringMatching(/^(warn info )*warn$/);
  expect(levels()).toEqual([down, down]);

  await redis.start();
  const terminal = await tokenOf('pos-terminal');
  await eventually('both count in Redis again', async () => {
    await call(one, terminal);
    await call(two, terminal);
    return levels().every((said) => said.endsWith('info'));
  });
  const up = expect.stringMatching(/^warn info( warn info)*$/);
  expect(levels()).toEqual([up, up]);
  const counted = Number(await redis.command('GET', keyOf('pos-terminal')));
  expect(await call(two, terminal)).toEqual(counted < LIMIT ? [200, LIMIT - counted - 1] : [429, 0]);
});
