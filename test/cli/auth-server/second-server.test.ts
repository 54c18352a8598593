import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientRow } from '../../../src/cli/auth-server/store';
import { changesOf, closeAll, registerClient, startServer } from './fixtures';

afterEach(closeAll);

describe('a second token server on one directory', () => {
  const STOPPED = {
    status: 503,
    code: 'storage_unavailable',
    detail:
      'Another process has changed the data of this token server, which has stopped: run one token server for each data directory.',
  };

  it('undoes no change that the first one has acknowledged: it stops, and says why', async () => {
    const first = await startServer();
    const client = await registerClient(first);
    const { dataDir } = first;
    const second = await startServer({ dataDir });
    const { body: revoked } = await first.post('/clients/pos-17/revoke').expect(200);
    const kept = readFileSync(join(dataDir, 'state.json'), 'utf8');
    for (const change of changesOf(second)) expect((await change().expect(503)).body).toMatchObject(STOPPED);
    expect(readFileSync(join(dataDir, 'state.json'), 'utf8')).toBe(kept);
    expect((await first.get('/clients/pos-17')).body.generation).toBe(revoked.generation);
    expect(readdirSync(dataDir).sort()).toEqual(['.gitignore', 'state.json']);

    const reason = `another process has changed ${join(dataDir, 'state.json')}: this token server stops, so that no change is undone; run one for each data directory`;
    expect((await second.auth.stopped).message).toBe(reason);
    expect(second.log.at('error').map(({ message }) => message)).toEqual([reason]);
    // What it knows may be superseded: it issues no token, and calls no log complete.
    expect((await second.token(client)).body).toMatchObject(STOPPED);
    for (const path of ['/clients', '/generations', '/.well-known/openid-configuration/jwks']) {
      expect((await second.get(path).expect(503)).body).toMatchObject(STOPPED);
    }
    await expect(second.auth.register({ client_id: 'late', scope: 'orders:read' })).rejects.toMatchObject({
      status: 503,
    });
    await first.accessToken(client);
    await first.patch('/clients/pos-17', { description: 'the first one goes on' }).expect(200);
  });

  it('and of two changes at the same moment only those that are on disk are acknowledged', async () => {
    const first = await startServer();
    const { dataDir } = first;
    const second = await startServer({ dataDir });
    const ids = Array.from({ length: 8 }, (_, at) => `till-${at}`);
    const outcomes = await Promise.all(
      ids.map(async (client_id, at) => {
        const server = at % 2 === 0 ? first : second;
        const { status } = await server.post('/clients', { client_id, scope: 'orders:read' });
        return [client_id, status] as const;
      }),
    );
    const { clients } = JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8')) as { clients: ClientRow[] };
    const onDisk = clients.map(({ clientId }) => clientId);
    const acknowledged = outcomes.filter(([, status]) => status === 201).map(([id]) => id);
    expect(outcomes.filter(([, status]) => status !== 201 && status !== 503)).toEqual([]);
    expect(onDisk).toEqual(expect.arrayContaining(acknowledged));
    expect(acknowledged.length).toBeLessThan(ids.length);
  });
});
