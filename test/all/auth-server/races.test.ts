import express from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../../src/gate';
import type { ClientWithSecret } from '../../../src/cli/auth-server';
import { fakeTime } from '../../support/fake-time';
import { AUDIENCE, ISSUER, closeAll, decode, registerClient, startServer } from '../../cli/auth-server/fixtures';
import type { TestServer } from '../../cli/auth-server/fixtures';

afterEach(closeAll);

/** Sends 60 token requests, with `change` among them; returns the tokens that were issued. */
async function race(server: TestServer, client: ClientWithSecret, scope: string, change: () => PromiseLike<unknown>) {
  const requests = Array.from({ length: 60 }, async (_, index) => {
    if (index === 20) return void (await change());
    return (await server.token(client, { scope })).body.access_token as string | undefined;
  });
  return (await Promise.all(requests)).filter((token) => token !== undefined);
}

async function floorOf(server: TestServer): Promise<number> {
  return (await server.get('/generations')).body.changes.at(-1).generation;
}

const generationOf = (token: string): number => decode(token).claims['generation'] as number;

it('a Description change that races token requests: a token dies with the change or carries the new generation', async () => {
  const time = fakeTime();
  const server = await startServer({}, time);
  const client = await registerClient(server);
  const keys = (await server.get('/.well-known/openid-configuration/jwks')).body;
  const gate = authenticate({
    issuer: ISSUER,
    audience: AUDIENCE,
    allowHttp: true,
    keys,
    generationSource: server.auth.generations,
    clock: time.clock,
  });
  const app = express().get('/', gate, requireScope('orders:read'), (_req, res) => void res.json({}));

  const tokens = await race(server, client, 'orders:read', () =>
    server.patch('/clients/pos-17', { description: 'new' }),
  );
  expect(tokens).toHaveLength(59);
  for (const token of tokens) {
    const { status } = await request(app).get('/').auth(token, { type: 'bearer' });
    expect({ generation: generationOf(token), status }).toEqual(
      status === 200 ? { generation: client.generation + 1, status } : { generation: client.generation, status: 401 },
    );
  }
  await gate.close();
});

it('a secret that is revoked while it is used: every token that it got is below the floor', async () => {
  const server = await startServer();
  const client = await registerClient(server);
  const tokens = await race(server, client, 'orders:read', () =>
    server.post('/clients/pos-17/secrets', { revoke_previous: true }),
  );
  expect(tokens.length).toBeGreaterThan(0);
  const floor = await floorOf(server);
  expect(tokens.filter((token) => generationOf(token) >= floor)).toEqual([]);
});

it('a scope that is taken away while it is asked for: every token that has it is below the floor', async () => {
  const server = await startServer();
  const client = await registerClient(server);
  const tokens = await race(server, client, 'orders:write', () =>
    server.patch('/clients/pos-17', { scope: 'orders:read' }),
  );
  expect(tokens.length).toBeGreaterThan(0);
  const floor = await floorOf(server);
  expect(tokens.filter((token) => generationOf(token) >= floor)).toEqual([]);
});
