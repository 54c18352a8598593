import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createClient } from '../../src/client';
import { authenticate, requireScope } from '../../src/gate';
import { startTestIssuer } from '../../src/testing';
import type { HttpTestIssuer } from '../../src/testing';

/** The recipe of docs/testing.md: what a caller does when its token is discarded while it calls. */
describe('a caller of which the token is discarded', () => {
  let issuer: HttpTestIssuer;
  let server: Server;
  let gate: ReturnType<typeof authenticate>;
  let baseUrl: string;
  const credential = { clientId: 'till-1', clientSecret: 'any', scope: 'orders:read' };

  beforeEach(async () => {
    issuer = await startTestIssuer();
    gate = authenticate(issuer.options);
    await gate.ready({ timeoutMs: 5_000 });
    const api = express();
    api.use(gate);
    api.get('/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
    server = api.listen(0, '127.0.0.1');
    await once(server, 'listening');
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    await gate.close();
    server.closeAllConnections();
    server.close();
    await issuer.close();
  });

  /** Statuses of 20 parallel calls after a discard, and the token requests that they cost. */
  async function afterDiscard(call: () => Promise<number>): Promise<readonly [number[], number]> {
    await call();
    issuer.bump('till-1');
    const before = issuer.tokenRequests;
    const statuses = await Promise.all(Array.from({ length: 20 }, call));
    return [statuses, issuer.tokenRequests - before];
  }

  it('is green with @tillgate/client: one token request, every call answered', async () => {
    const client = createClient({ tokenUrl: `${issuer.issuer}/connect/token`, baseUrl, ...credential });
    const [statuses, requests] = await afterDiscard(async () => (await client.fetch('/orders')).status);
    expect([new Set(statuses), requests]).toEqual([new Set([200]), 1]);
  });

  it('is red with the handler that many write: each 401 throws away the token of the one before', async () => {
    let token: string | undefined;
    const fetchToken = async (): Promise<string> => {
      const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'till-1', scope: 'orders:read' });
      const response = await fetch(`${issuer.issuer}/connect/token`, { method: 'POST', body });
      return ((await response.json()) as { access_token: string }).access_token;
    };
    const send = async (): Promise<number> =>
      (await fetch(`${baseUrl}/orders`, { headers: { Authorization: `Bearer ${(token ??= await fetchToken())}` } }))
        .status;
    const [, requests] = await afterDiscard(async () => {
      if ((await send()) !== 401) return 200;
      token = undefined;
      return send();
    });
    expect(requests).toBeGreaterThan(1);
  });

  it('counts the token requests that fail as well', async () => {
    const client = createClient({ tokenUrl: `${issuer.issuer}/connect/token`, baseUrl, ...credential });
    issuer.outage('503');
    await expect(client.token()).rejects.toMatchObject({ name: 'TokenRequestError', status: 503 });
    expect(issuer.tokenRequests).toBe(1);
  });
});
