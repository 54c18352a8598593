import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTillgate } from '../setup/tillgate';
import type { RunningTillgate } from '../setup/tillgate';
import { eventually } from '../support/eventually';
import { busy, shoot, statuses } from '../support/load';
import type { Outcome, Shot } from '../support/load';

interface Report {
  readonly base_url: string;
  readonly auth_url: string;
  readonly clients: readonly { client_id: string; client_secret: string }[];
}

let dataDir: string;
let tillgate: RunningTillgate<Report>;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tillgate-greedy-'));
  tillgate = await startTillgate('dev', {
    TILLGATE_PORT: '0',
    TILLGATE_AUTH_PORT: '0',
    TILLGATE_DATA_DIR: dataDir,
    TILLGATE_RATE_LIMIT: 'off',
    // An hour, so that a slow machine stays in one window.
    TILLGATE_TOKEN_RATE_LIMIT: '60/h',
  });
});
afterEach(async () => {
  await tillgate?.stop();
  await rm(dataDir, { recursive: true });
});

/** A token request of the demo kiosk. */
function tokenRequest(secret = kiosk().client_secret): Shot {
  const form = { grant_type: 'client_credentials', client_id: 'kiosk', client_secret: secret, scope: 'orders:read' };
  return {
    url: `${tillgate.report.auth_url}/connect/token`,
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  };
}

function kiosk(): { client_secret: string } {
  return tillgate.report.clients.find(({ client_id }) => client_id === 'kiosk')!;
}

async function orderRequest(): Promise<Shot> {
  const { body } = await shoot(tokenRequest());
  const { access_token } = JSON.parse(body) as { access_token: string };
  return { url: `${tillgate.report.base_url}/v1/orders`, headers: { Authorization: `Bearer ${access_token}` } };
}

it('1,000 half-open connections at each server: good requests overtake all of them, and a stop waits for one deadline, not for two', async () => {
  const { base_url: api, auth_url: tokens } = tillgate.report;
  const order = await orderRequest();
  const closedAt: Record<string, number[]> = { [api]: [], [tokens]: [] };
  for (const url of [api, tokens]) {
    const sockets = await Promise.all(Array.from({ length: 1_000 }, () => halfOpen(url)));
    for (const socket of sockets) socket.on('close', () => closedAt[url]!.push(performance.now()));
  }

  for (const shot of [order, tokenRequest()])
    expect(statuses([await shoot(shot), await shoot(shot), await shoot(shot)])).toEqual({ 200: 3 });
  expect(closedAt).toEqual({ [api]: [], [tokens]: [] });

  const stoppedAt = performance.now();
  await tillgate.stop();
  await eventually('the ends of all connections', () =>
    Object.values(closedAt).every((times) => times.length === 1_000),
  );
  const [first, last] = [api, tokens].map((url) => closedAt[url]![0]!).sort((one, other) => one - other);
  // One deadline after the other would make the second server wait as long again.
  expect(last! - first!).toBeLessThan((first! - stoppedAt) / 2);
});

it('10,000 wrong secrets: 429 with Retry-After but for the first 60, while the right one works from another address', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  const wrong = await Promise.all(Array.from({ length: 10_000 }, () => shoot({ ...tokenRequest('wrong'), agent })));
  agent.destroy();

  expect(statuses(wrong)).toEqual({ 401: 60, 429: 9_940 });
  for (const { headers, body } of wrong.filter(({ status }) => status === 429)) {
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(body)).toMatchObject({ error: 'temporarily_unavailable' });
  }
  expect((await shoot(tokenRequest())).status).toBe(429);
  expect((await shoot({ ...tokenRequest(), localAddress: '127.0.0.2' })).status).toBe(200);
});

it('SIGTERM under load: every accepted request gets a response', async () => {
  const order = await orderRequest();
  const load = busy(30, () => order);
  await eventually('500 responses', () => load.completed >= 500);
  const stoppedAt = performance.now();
  await tillgate.stop();
  const outcomes = await load.stop();

  expect(outcomes.filter(({ startedAt }) => startedAt > stoppedAt).some(({ status }) => status === 200)).toBe(true);
  expect(outcomes.filter((outcome) => isDropped(outcome, stoppedAt))).toEqual([]);
});

/**
 * A response other than 200, or no response on a connection that the server had accepted. A new connection that is reset
 * after the stop was still in the operating system's queue.
 */
function isDropped({ status, reused, startedAt }: Outcome, stoppedAt: number): boolean {
  if (status !== 0) return status !== 200;
  return reused || startedAt < stoppedAt;
}

/** A connection on which half of a request head was sent. */
async function halfOpen(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {}).resume();
  await once(socket, 'connect');
  socket.write('GET /v1/orders HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  return socket;
}
