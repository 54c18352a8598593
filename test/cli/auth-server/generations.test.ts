import { httpGenerations } from '../../../src/gate/generation';
import type { Change } from '../../../src/gate/generation';
import { settle } from '../../support/fake-time';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

let server: TestServer;

beforeEach(async () => {
  server = await startServer();
});
afterEach(closeAll);

async function served(query = ''): Promise<Change[]> {
  const { status, body } = await server.get(`/generations${query}`);
  expect(status).toBe(200);
  return body.changes.map(({ client_id, generation }: never) => [client_id, generation]);
}

describe('GET /generations', () => {
  it('has every change, those of deleted clients too, also after a restart', async () => {
    const { generation } = await registerClient(server);
    const gone = await registerClient(server, { client_id: 'gone' });
    await server.delete('/clients/gone');
    const changes = [
      ['pos-17', generation],
      ['gone', gone.generation],
      ['gone', gone.generation + 1],
    ];
    expect(await served()).toEqual(changes);
    server = await server.restart();
    expect(await served()).toEqual([changes[0], changes[2]]);
  });

  it('has a mark of now, and what follows a position', async () => {
    const { position, mark } = (await server.get('/generations')).body;
    expect(mark).toMatchObject({ complete_ms: server.time.clock(), kept_ms: 25 * 3_600_000 });
    const { generation } = await registerClient(server);
    expect(await served(`?after=${position}`)).toEqual([['pos-17', generation]]);
  });

  it('begins at the oldest change again after a restart, in another epoch', async () => {
    const { generation } = await registerClient(server);
    const { position, mark } = (await server.get('/generations')).body;
    server = await server.restart();
    const { body } = await server.get(`/generations?after=${position}`);
    expect(body.changes).toEqual([{ client_id: 'pos-17', generation }]);
    expect(body.mark.epoch).not.toBe(mark.epoch);
  });

  it('has every change although the clock is ten days ahead when it starts, and right again later', async () => {
    const { generation } = await registerClient(server);
    server.time.step(10 * 86_400_000);
    server = await server.restart();
    server.time.step(-10 * 86_400_000);
    expect(await served()).toEqual([['pos-17', generation]]);
  });

  it('is not called complete while a change of the next hour is missing, because the clock was slow at the start', async () => {
    const { generation } = await registerClient(server);
    server.time.step(-600_000);
    server = await server.restart();
    const { body } = await server.get('/generations');
    expect(body).toMatchObject({ changes: [], mark: { complete_ms: 0 } });
    await server.time.advance(600_000);
    expect(await served()).toEqual([['pos-17', generation]]);
    expect((await server.get('/generations')).body.mark.complete_ms).toBe(server.time.clock());
  });

  it('keeps changes for as long as maxTokenAgeSeconds says', async () => {
    server = await server.restart({ maxTokenAgeSeconds: 60 });
    expect((await server.get('/generations')).body.mark.kept_ms).toBe(3_660_000);
  });

  it('tells httpGenerations() of a change within the wait', async () => {
    const source = httpGenerations({ url: server.url });
    const reader = source.reader();
    await reader.next(0);
    const waiting = reader.next(2_000);
    const { generation } = await registerClient(server);
    let { changes } = await waiting;
    while (changes.length === 0) ({ changes } = await reader.next(2_000));
    expect(changes).toEqual([['pos-17', generation]]);
    await source.close?.();
  });

  it('ends what is held when the token server is closed', async () => {
    const held = fetch(`${server.url}/generations?wait=30000`);
    while (server.time.pending === 0) await settle();
    await server.auth.close();
    expect(await (await held).json()).toMatchObject({ changes: [], end: true });
  });

  it('is the log that a gate of this process can read', async () => {
    const { generation } = await registerClient(server);
    const reader = server.auth.generations.reader();
    expect((await reader.next(0)).changes).toEqual([['pos-17', generation]]);
    reader.close();
  });
});

describe('a change', () => {
  const change = (path: string, body?: object) => () => server.post(path, body);
  it.each([
    ['a registration', change('/clients', { client_id: 'new', scope: 'orders:read' })],
    ['a PATCH', () => server.patch('/clients/pos-17', { description: 'new' })],
    ['a PATCH without effect', () => server.patch('/clients/pos-17', {})],
    ['a rotation', change('/clients/pos-17/secrets')],
    ['a revocation', change('/clients/pos-17/revoke')],
  ])('is published as soon as it is made: %s', async (_what, make) => {
    await registerClient(server);
    const { status, body } = await make();
    expect(status).toBeLessThan(300);
    expect(body.published).toBe(true);
    expect(await served()).toContainEqual([body.client_id, body.generation]);
  });

  it('says where it is only in its own response', async () => {
    expect(await registerClient(server)).toMatchObject({ published: true });
    expect((await server.get('/clients/pos-17')).body).not.toHaveProperty('published');
    expect(server.auth.list()[0]).not.toHaveProperty('published');
    const removed = await server.delete('/clients/pos-17');
    expect([removed.status, removed.text]).toEqual([204, '']);
  });

  it('with a generation in the future is published when its time has come, also after a restart', async () => {
    const { generation } = await registerClient(server);
    server.time.step(-3_600_000);
    const revoked = await server.post('/clients/pos-17/revoke');
    expect(revoked.body).toMatchObject({ generation: generation + 1, published: false });
    expect(await served()).toEqual([['pos-17', generation]]);
    server = await server.restart();
    expect(await served()).toEqual([]);
    await server.time.advance(3_600_001);
    expect(await served()).toEqual([['pos-17', generation + 1]]);
    expect(server.log.at('warn')).toEqual([
      {
        level: 'warn',
        fields: { aheadMs: 3_600_001 },
        message: 'the clock has stepped back: a change is published when its time has come',
      },
    ]);
  });

  it('with a generation in the future is published within a second after the clock is right again', async () => {
    const { generation } = await registerClient(server);
    server.time.step(-3_600_000);
    await server.post('/clients/pos-17/revoke');
    await server.time.advance(2_000);
    expect((await server.get('/generations')).body.mark.complete_ms).toBe(0);
    server.time.step(3_600_000);
    await server.time.advance(1_000);
    expect(await served()).toEqual([
      ['pos-17', generation],
      ['pos-17', generation + 1],
    ]);
    expect((await server.get('/generations')).body.mark.complete_ms).toBe(server.time.clock());
    expect(server.log.at('warn')).toHaveLength(1);
  });
});

describe('the client id *', () => {
  it('is nobody, and can be registered by nobody', async () => {
    expect((await server.get('/clients/*')).status).toBe(404);
    expect((await server.delete('/clients/*')).status).toBe(404);
    expect((await server.post('/clients/*/revoke')).status).toBe(404);
    const refused = await server.post('/clients', { client_id: '*', scope: 'orders:read' });
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request']);
  });
});
