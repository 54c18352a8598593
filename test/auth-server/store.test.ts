import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthServer } from '../../src/auth-server';
import type { ClientRow } from '../../src/auth-server/store';
import { tryLock } from '../../src/auth-server/data-directory';
import { Store } from '../../src/auth-server/store';
import { newSigningKey } from '../../src/auth-server/tokens';
import { fakeTime, settle } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import { expectPrivate } from '../support/private-file';
import { AUDIENCE, ISSUER, changesOf, closeAll, newDirectory, registerClient, startServer } from './fixtures';

afterEach(closeAll);

describe('what is kept on disk', () => {
  it('survives a restart as a whole: clients, secrets, tokens, keys, entity tags', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const rotated = (await server.post('/clients/pos-17/secrets')).body;
    await registerClient(server, { client_id: 'gone' });
    await server.delete('/clients/gone');
    const token = await server.accessToken(client);
    const addresses = ['/clients', '/clients/pos-17', '/.well-known/openid-configuration/jwks'];
    const before = await Promise.all(addresses.map((path) => server.get(path)));

    const again = await server.restart();
    const after = await Promise.all(addresses.map((path) => again.get(path)));
    expect(after.map(({ body }) => body)).toEqual(before.map(({ body }) => body));
    expect(after[1]!.headers['etag']).toBe(before[1]!.headers['etag']);
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
    const locks = readdirSync(dataDir).filter((name) => name.startsWith('lock.'));
    expect(locks).toHaveLength(1);
    for (const name of locks) expectPrivate(join(dataDir, name));
    expect(readFileSync(path, 'utf8')).toContain('"pos-17"');
    expect(readFileSync(path, 'utf8')).not.toContain(secret);
  });

  it.each([
    ['an empty file', '', 'it is not valid JSON'],
    [
      'another format',
      '{"format":3}',
      'its "format" is not 2: another version has written it, use that one (UPGRADE.md)',
    ],
    ['no keys', '{"format":2,"clients":[]}', 'its "keys" are incomplete'],
  ])('is never overwritten when it cannot be used: %s', async (_name, text, reason) => {
    const dataDir = newDirectory();
    const path = join(dataDir, 'state.json');
    writeFileSync(path, text);
    await expect(startServer({ dataDir })).rejects.toThrow(
      `the state of the token server in ${path} cannot be used: ${reason}; restore it, or delete it to begin anew`,
    );
    expect(readFileSync(path, 'utf8')).toBe(text);
    rmSync(path);
    await startServer({ dataDir });
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
    expect(server.auth.list()).toEqual([
      expect.objectContaining({ client_id: 'pos-17', version: 1, description: 'Till 17' }),
    ]);
    await server.accessToken(client);
    expect(filesOf(server.dataDir)).toEqual(['.gitignore', 'state.json', 'state.json.kept']);

    rmSync(path, { recursive: true });
    renameSync(`${path}.kept`, path);
    expect((await server.patch('/clients/pos-17', { description: 'new' })).status).toBe(200);
  });
});

/** The files of a data directory, without its lock. */
function filesOf(dataDir: string): string[] {
  return readdirSync(dataDir)
    .filter((name) => !name.startsWith('lock.'))
    .sort();
}

/** Name of the lock of a process; on Linux it has the start time of the process. */
function lockOf(pid: number, start = startOf(pid)): string {
  return `lock.${pid}.${start}.0123456789ab`;
}

function startOf(pid: number): string {
  if (!existsSync(`/proc/${pid}/stat`)) return '0';
  const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? '0';
}

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

  it('belongs to one server of a process', async () => {
    const server = await startServer();
    await expect(startServer({ dataDir: server.dataDir })).rejects.toThrow(
      `the data directory ${server.dataDir} is in use by another token server of this process: stop it first`,
    );
    await server.restart();
  });

  it('belongs to one process', async () => {
    const dataDir = newDirectory();
    writeFileSync(join(dataDir, lockOf(process.ppid)), '');
    await expect(createAuthServer({ issuer: ISSUER, audience: AUDIENCE, dataDir })).rejects.toThrow(
      new Error(`the data directory ${dataDir} is in use by process ${process.ppid}: stop it first`),
    );
    expect(readdirSync(dataDir).sort()).toEqual(['.gitignore', lockOf(process.ppid)]);
  });

  it.each<readonly [string, string]>([
    ['a process that is dead', lockOf(4_194_304, '7')],
    // Only Linux tells the start time of a process.
    ...(existsSync('/proc/self/stat')
      ? [['an earlier process of the same pid', lockOf(process.ppid, '1')] as const]
      : []),
    ['a process with our own pid, as containers have it', lockOf(process.pid, '1')],
  ])('is taken over from %s', async (_name, lock) => {
    const dataDir = newDirectory();
    writeFileSync(join(dataDir, lock), '');
    const server = await startServer({ dataDir });
    await registerClient(server);
    expect(readdirSync(dataDir).filter((name) => name.startsWith(lock))).toEqual([]);
  });
});

describe('changes that arrive together', () => {
  const row = (clientId: string): ClientRow => ({ clientId }) as unknown as ClientRow;

  it('go to disk together, are invisible until then, and each has its own outcome', async () => {
    const time = fakeTime();
    const written: (() => void)[] = [];
    let slow = false;
    const store = await Store.open({
      dataDir: newDirectory(),
      clock: time.clock,
      logger: recordingLogger(),
      newKeys: async () => ({ signing: await newSigningKey('ES256'), retired: [] }),
      write: () => (slow ? new Promise((resolve) => written.push(resolve)) : Promise.resolve()),
    });
    slow = true;
    const add = (id: string) => store.change((_state, nowMs) => ({ put: [row(id)], value: [id, nowMs] }));
    const first = add('a');
    await settle();
    const others = ['b', 'c', 'd'].map(add);
    const refused = store.change(() => {
      throw new RangeError('refused');
    });
    refused.catch(() => {});
    await settle();
    expect(written).toHaveLength(1);
    expect([...store.state.clients.keys()]).toEqual([]);
    written[0]!();
    expect(await first).toEqual(['a', time.clock()]);
    await settle();
    expect(written).toHaveLength(2);
    expect([...store.state.clients.keys()]).toEqual(['a']);
    written[1]!();
    expect(await Promise.all(others)).toEqual(['b', 'c', 'd'].map((id) => [id, time.clock()]));
    await expect(refused).rejects.toThrow('refused');
    expect([...store.state.clients.keys()]).toEqual(['a', 'b', 'c', 'd']);
    await store.close();
    await expect(add('e')).rejects.toThrow('the token server is closed');
  });
});

it('keeps the directory until the write that is under way at close() has ended, and those that wait for it', async () => {
  const dataDir = newDirectory();
  const written: (() => void)[] = [];
  let slow = false;
  const options = {
    dataDir,
    clock: fakeTime().clock,
    logger: recordingLogger(),
    newKeys: async () => ({ signing: await newSigningKey('ES256'), retired: [] }),
    write: () => (slow ? new Promise<void>((resolve) => written.push(resolve)) : Promise.resolve()),
  };
  const store = await Store.open(options);
  slow = true;
  const put = (clientId: string) => store.change(() => ({ put: [{ clientId } as ClientRow], value: clientId }));
  const changes = [put('a')];
  await settle();
  changes.push(put('b'));
  const isTaken = async (): Promise<boolean> => {
    const attempt = await tryLock(join(dataDir, 'lock'));
    if ('release' in attempt) await attempt.release();
    return 'holder' in attempt;
  };
  await settle();
  let isClosed = false;
  const closing = store.close().then(() => (isClosed = true));
  for (const count of [1, 2]) {
    // More calls of the file system than a release needs.
    for (let call = 0; call < 50; call++) await readdir(dataDir);
    expect(written).toHaveLength(count);
    expect([isClosed, await isTaken()]).toEqual([false, true]);
    written[count - 1]!();
  }
  expect(await Promise.all(changes)).toEqual(['a', 'b']);
  await closing;
  expect(await isTaken()).toBe(false);
});
