import { chmodSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientRow } from '../../../src/cli/auth-server/store';
import { Store } from '../../../src/cli/auth-server/store';
import { newSigningKey } from '../../../src/cli/auth-server/tokens';
import { fakeTime, settle } from '../../support/fake-time';
import { recordingLogger } from '../../support/log';
import { expectPrivate } from '../../support/private-file';
import { changesOf, closeAll, newDirectory, registerClient, startServer } from './fixtures';

afterEach(closeAll);

describe('what is kept on disk', () => {
  it('survives a restart as a whole: clients, secrets, tokens, keys, retired ones too', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const rotated = (await server.post('/clients/pos-17/secrets')).body;
    await registerClient(server, { client_id: 'gone' });
    await server.delete('/clients/gone');
    const token = await server.accessToken(client);
    await server.auth.rotateKeys();
    const addresses = ['/clients', '/clients/pos-17', '/.well-known/openid-configuration/jwks'];
    const before = await Promise.all(addresses.map((path) => server.get(path)));

    const again = await server.restart();
    const after = await Promise.all(addresses.map((path) => again.get(path)));
    expect(after.map(({ body }) => body)).toEqual(before.map(({ body }) => body));
    expect(await again.introspect(rotated, token)).toMatchObject({ active: true });
    await again.accessToken(client);
  });

  it('is readable for its owner only, and holds no secret', async () => {
    const dataDir = join(newDirectory(), 'a', 'b');
    const server = await startServer({ dataDir });
    const { client_secret: secret } = await registerClient(server);
    const path = join(dataDir, 'state.json');
    expectPrivate(path);
    expectPrivate(dataDir, 0o700);
    expect(readFileSync(path, 'utf8')).toContain('"pos-17"');
    expect(readFileSync(path, 'utf8')).not.toContain(secret);
  });
});

describe('a disk that takes no more', () => {
  it('responds to changes with 503, keeps the old state, goes on reading, and recovers', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    // A directory in the place of the file: the real file system refuses the rename.
    const path = join(server.dataDir, 'state.json');
    renameSync(path, `${path}.kept`);
    mkdirSync(path);
    const changes = changesOf(server);
    for (const change of changes) {
      const response = await change();
      expect(response.status).toBe(503);
      expect(response.headers['retry-after']).toBe('5');
      expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      expect(response.body.code).toBe('storage_unavailable');
      expect(response.text).not.toContain(server.dataDir);
    }
    expect(server.log.at('error')).toHaveLength(changes.length);
    expect(server.log.at('error')[0]).toMatchObject({
      fields: { path, error: expect.stringContaining('EISDIR') },
      message: 'the state could not be written',
    });
    expect(server.auth.list()).toEqual([expect.objectContaining({ client_id: 'pos-17', description: 'Till 17' })]);
    await server.accessToken(client);
    expect(readdirSync(server.dataDir).sort()).toEqual(['.gitignore', 'state.json', 'state.json.kept']);

    rmSync(path, { recursive: true });
    renameSync(`${path}.kept`, path);
    expect((await server.patch('/clients/pos-17', { description: 'new' })).status).toBe(200);
  });
});

describe('the data directory', () => {
  it('keeps itself out of git', async () => {
    const { dataDir } = await startServer();
    expect(readFileSync(join(dataDir, '.gitignore'), 'utf8')).toBe('*\n');
  });

  it('keeps a .gitignore that is already there', async () => {
    const dataDir = newDirectory();
    writeFileSync(join(dataDir, '.gitignore'), 'state.json\n');
    await startServer({ dataDir });
    expect(readFileSync(join(dataDir, '.gitignore'), 'utf8')).toBe('state.json\n');
  });

  (process.platform === 'win32' ? it.skip.each : it.each)([0o770, 0o702, 0o777])(
    'is refused when others can write to it: mode %o (skipped on Windows, which has no permission bits)',
    async (mode) => {
      const dataDir = newDirectory();
      chmodSync(dataDir, mode);
      await expect(startServer({ dataDir })).rejects.toThrow(
        new Error(
          `other users can write to the data directory ${dataDir} (mode ${mode.toString(8)}): run chmod go-w ${dataDir}`,
        ),
      );
      expect(readdirSync(dataDir)).toEqual([]);
      chmodSync(dataDir, mode & ~0o022);
      await startServer({ dataDir });
    },
  );
});

describe('changes that arrive together', () => {
  const row = (clientId: string): ClientRow => ({ clientId }) as unknown as ClientRow;

  it('go to disk one after the other, are invisible until then, and each has its own outcome', async () => {
    const time = fakeTime();
    const written: (() => void)[] = [];
    let slow = false;
    const store = await Store.open({
      dataDir: newDirectory(),
      clock: time.clock,
      logger: recordingLogger(),
      newKeys: async () => ({ signing: await newSigningKey(), retired: [] }),
      write: () => (slow ? new Promise((resolve) => written.push(resolve)) : Promise.resolve()),
    });
    slow = true;
    const add = (id: string) => store.change((_state, nowMs) => ({ put: row(id), value: [id, nowMs] }));
    const first = add('a');
    const refused = store.change(() => {
      throw new RangeError('refused');
    });
    refused.catch(() => {});
    const second = add('b');
    await settle();
    expect(written).toHaveLength(1);
    expect([...store.state.clients.keys()]).toEqual([]);
    written[0]!();
    expect(await first).toEqual(['a', time.clock()]);
    await expect(refused).rejects.toThrow('refused');
    await settle();
    expect([...store.state.clients.keys()]).toEqual(['a']);
    let isClosed = false;
    const closing = store.close().then(() => (isClosed = true));
    await settle();
    expect(isClosed).toBe(false);
    written[1]!();
    expect(await second).toEqual(['b', time.clock()]);
    await closing;
    expect([...store.state.clients.keys()]).toEqual(['a', 'b']);
    await expect(add('e')).rejects.toThrow('the token server is closed');
  });
});
