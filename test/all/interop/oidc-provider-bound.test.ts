import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { createClient } from 'redis';
import { authenticate, requireScope } from '../../../src/gate';
import type { Gate } from '../../../src/gate';
import { dpop, mtls } from '../../../src/gate/possession';
import { redisReplayStore } from '../../../src/stores';
import certificates from '../../support/certificates.json';
import { recordingLogger } from '../../support/log';
import { startScript } from '../setup/script';
import type { Script } from '../setup/script';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { API } from './guarded-api';
import { startOidcProvider } from './oidc-provider';
import type { OidcProvider } from './oidc-provider';
import { SECRET } from './provider-clients';

/** Answers of the client's process. */
interface Called {
  readonly status: number;
  readonly error?: string;
}

const client = {
  client_secret: SECRET,
  scope: 'orders:read',
  token_endpoint_auth_method: 'client_secret_basic' as const,
};
const CERTIFICATE = encodeURIComponent(certificates['till-1'].certificate);

let redis: RedisServer;
let redisClient: ReturnType<typeof createClient>;
let provider: OidcProvider;
let till: Script<object>;
const servers: { server: Server; gate: Gate }[] = [];

beforeAll(async () => {
  redis = await startRedis();
  redisClient = createClient({ url: redis.url });
  redisClient.on('error', () => undefined);
  await redisClient.connect();
  provider = await startOidcProvider({
    audiences: [API],
    opaque: [],
    clients: [
      { ...client, client_id: 'till' },
      { ...client, client_id: 'kiosk', tls_client_certificate_bound_access_tokens: true },
    ],
  });
  for (const name of ['till', 'kiosk']) await provider.stamp(name, Date.now() - 60_000);
  till = await startScript(join(__dirname, 'clients/openid-client-dpop.mjs'));
  await till.ask({ discover: { issuer: provider.issuer, clientId: 'till', secret: SECRET } });
});

afterAll(async () => {
  for (const { server, gate } of servers) {
    server.close();
    await gate.close();
  }
  await till?.stop();
  redisClient?.destroy();
  await Promise.all([provider?.stop(), redis?.stop()]);
});

/** One process of an API whose gate accepts bound tokens; all of them share Redis. */
async function startApi(options: { nonce: boolean }): Promise<string> {
  const app = express();
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gate = authenticate({
    issuer: provider.issuer,
    audience: API,
    logger: recordingLogger(),
    possession: [
      dpop({ baseUrl: origin, replayStore: redisReplayStore({ client: redisClient }), nonce: options.nonce }),
      mtls({ certificate: (req) => decodeURIComponent(String(req.headers['x-client-certificate'] ?? '')) }),
    ],
  });
  servers.push({ server, gate });
  app.use(gate).get('/orders', requireScope('orders:read'), (req, res) => void res.json(req.auth));
  await gate.ready();
  return `${origin}/orders`;
}

const statusOf = async (url: string, headers: Record<string, string>): Promise<number> =>
  (await fetch(url, { headers })).status;

describe('openid-client with a token of oidc-provider that is bound by DPoP', () => {
  it.each([false, true])('is accepted with each new proof; nonces of the server: %p', async (nonce) => {
    const url = await startApi({ nonce });
    const { access_token: accessToken, token_type } = await till.ask<{ access_token: string; token_type: string }>({
      token: { scope: 'orders:read' },
    });
    expect(token_type.toLowerCase()).toBe('dpop');
    for (let use = 0; use < 3; use++) {
      expect(await till.ask<Called>({ call: { url, accessToken } })).toEqual({ status: 200 });
    }
    expect(await statusOf(url, { authorization: `Bearer ${accessToken}` })).toBe(401);
    expect(await statusOf(url, { authorization: `DPoP ${accessToken}` })).toBe(401);
  });

  it('leaves one sorted set in Redis for each client, which Redis drops when its proofs have ended', async () => {
    const url = await startApi({ nonce: false });
    const { access_token: accessToken } = await till.ask<{ access_token: string }>({ token: { scope: 'orders:read' } });
    await redisClient.flushDb();
    for (let use = 0; use < 2; use++) await till.ask({ call: { url, accessToken } });
    const [key = '', ...others] = await redisClient.keys('*');
    expect([key, others]).toEqual([expect.stringMatching(/^tillgate:dpop:[\w-]{43}$/), []]);
    expect(await redisClient.zCard(key)).toBe(2);
    const leftMs = await redisClient.pTTL(key);
    // 60 s, the tolerance of 10 s, and 20 s by which clocks of processes may differ.
    expect(leftMs).toBeGreaterThan(80_000);
    expect(leftMs).toBeLessThanOrEqual(91_000);
  });

  it('gets 503 while Redis is away, and 200 when it is back', async () => {
    const url = await startApi({ nonce: false });
    const { access_token: accessToken } = await till.ask<{ access_token: string }>({ token: { scope: 'orders:read' } });
    const call = (): Promise<Called> => till.ask<Called>({ call: { url, accessToken } });
    expect(await call()).toEqual({ status: 200 });
    await redis.kill();
    expect(await call()).toMatchObject({ status: 503 });
    await redis.start();
    await eventually('200', async () => (await call()).status === 200);
  });
});

describe('a token of oidc-provider that is bound to a certificate', () => {
  it('is accepted with that certificate only', async () => {
    const url = await startApi({ nonce: false });
    const response = await fetch(provider.tokenEndpoint, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`kiosk:${encodeURIComponent(SECRET)}`).toString('base64')}`,
        'x-client-certificate': CERTIFICATE,
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'orders:read' }),
    });
    const { access_token: accessToken } = (await response.json()) as { access_token: string };
    const authorization = `Bearer ${accessToken}`;
    expect(await statusOf(url, { authorization, 'x-client-certificate': CERTIFICATE })).toBe(200);
    expect(await statusOf(url, { authorization })).toBe(401);
    const another = encodeURIComponent(certificates['till-2'].certificate);
    expect(await statusOf(url, { authorization, 'x-client-certificate': another })).toBe(401);
  });
});
