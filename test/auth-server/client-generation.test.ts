import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

let server: TestServer;

beforeEach(async () => {
  server = await startServer();
});
afterEach(closeAll);

async function generationAndVersion(): Promise<{ generation: number; version: number }> {
  const { generation, version } = (await server.get('/clients/pos-17')).body;
  return { generation, version };
}

const patch = (body: object) => () => server.patch('/clients/pos-17', body);
const rotate = (body?: object) => () => server.post('/clients/pos-17/secrets', body);

describe('the generation of a credential', () => {
  it.each([
    ['another Description', patch({ description: 'Till 18' })],
    ['white space in the Description', patch({ description: 'Till  17' })],
    ['white space at its end', patch({ description: 'Till 17 ' })],
    ['another case in the Description', patch({ description: 'till 17' })],
    ['an empty Description', patch({ description: '' })],
    ['a scope taken away', patch({ scope: 'orders:read' })],
    ['a scope in place of another', patch({ scope: 'orders:read items:read' })],
    ['disabled', patch({ disabled: true })],
    ['another secret', rotate()],
    ['another secret, the others revoked', rotate({ revoke_previous: true })],
    ['revoke', () => server.post('/clients/pos-17/revoke')],
  ])('moves with: %s', async (_name, change) => {
    const { generation } = await registerClient(server);
    await server.time.advance(1_000);
    expect((await change()).status).toBeLessThan(300);
    expect(await generationAndVersion()).toEqual({ generation: generation + 1_000, version: 2 });
  });

  it.each([
    ['a further scope', patch({ scope: 'orders:read orders:write items:read' }), 2],
    ['another secret with keep_tokens', rotate({ keep_tokens: true }), 2],
    ['the same Description', patch({ description: 'Till 17' }), 1],
    ['the same scopes in another order', patch({ scope: 'orders:write orders:read' }), 1],
    ['enabled as before', patch({ disabled: false }), 1],
    ['no member at all', patch({}), 1],
  ])('stays with: %s', async (_name, change, version) => {
    const { generation } = await registerClient(server);
    await server.time.advance(1_000);
    expect((await change()).status).toBeLessThan(300);
    expect(await generationAndVersion()).toEqual({ generation, version });
  });

  it('moves when the client is disabled, and stays when it is enabled again', async () => {
    const client = await registerClient(server);
    const token = await server.accessToken(client);
    const { generation } = (await server.patch('/clients/pos-17', { disabled: true })).body;
    expect(generation).toBeGreaterThan(client.generation);
    expect((await server.token(client)).status).toBe(401);
    const enabled = (await server.patch('/clients/pos-17', { disabled: false })).body;
    expect(enabled).toMatchObject({ generation, version: 3 });
    expect((await server.token(client)).status).toBe(200);
    expect(await server.introspect(client, token)).toEqual({ active: false });
  });

  it('is max(previous + 1, now): it goes on while the clock stands still or steps back', async () => {
    const { generation } = await registerClient(server);
    const revoke = async () => (await server.post('/clients/pos-17/revoke')).body.generation;
    expect(await revoke()).toBe(generation + 1);
    server.time.step(-3_600_000);
    expect(await revoke()).toBe(generation + 2);
    server.time.step(7_200_000);
    expect(await revoke()).toBe(generation + 3_600_000);
  });

  it('is above the tombstone when a deleted id is registered again, also after a restart with a clock that is slow', async () => {
    const first = await registerClient(server);
    const token = await server.accessToken(first);
    await server.delete('/clients/pos-17');
    server.time.step(-3_600_000);
    server = await server.restart();
    const again = await registerClient(server);
    expect(again).toMatchObject({ generation: first.generation + 2, version: 3 });
    expect(await server.introspect(again, token)).toEqual({ active: false });
  });
});

describe('secrets', () => {
  it('are two at most: the third rotation ends the oldest', async () => {
    const first = await registerClient(server);
    const second = (await server.post('/clients/pos-17/secrets')).body;
    expect((await server.token(first)).status).toBe(200);
    expect((await server.token(second)).status).toBe(200);
    const third = (await server.post('/clients/pos-17/secrets', { keep_tokens: true })).body;
    expect(third.secrets).toHaveLength(2);
    expect((await server.token(first)).status).toBe(401);
    expect((await server.token(second)).status).toBe(200);
    expect((await server.token(third)).status).toBe(200);
  });

  it('end immediately with revoke_previous', async () => {
    const first = await registerClient(server);
    const response = await server.post('/clients/pos-17/secrets', { revoke_previous: true });
    expect(response.status).toBe(201);
    expect(response.body).toMatchObject({ client_id: 'pos-17', client_secret: expect.stringMatching(/^[\w-]{43}$/) });
    expect(response.body.secrets).toHaveLength(1);
    expect((await server.token(first)).status).toBe(401);
    expect((await server.token(response.body)).status).toBe(200);
  });
});

it('a deleted client is not listed, and is named when it is asked for', async () => {
  await registerClient(server);
  await server.delete('/clients/pos-17');
  expect((await server.get('/clients')).body).toEqual({ clients: [] });
  expect(server.auth.list()).toEqual([]);
  const detail = 'No client has this id: GET /clients lists the registered ones, POST /clients registers one.';
  expect((await server.get('/clients/pos-17')).body).toMatchObject({ code: 'not_found', detail });
});
