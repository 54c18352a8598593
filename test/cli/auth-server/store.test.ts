import { chmodSync, lstatSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import type { WriteFileOptions } from 'node:fs';
import * as promises from 'node:fs/promises';
import { join } from 'node:path';
import { prepareDataDirectory, writeDurably } from '../../../src/cli/auth-server/data-directory';
import { readState, Store } from '../../../src/cli/auth-server/store';
import type { ClientRow, State } from '../../../src/cli/auth-server/store';
import { fakeTime, settle } from '../../support/fake-time';
import { recordingLogger } from '../../support/log';
import { expectPrivate } from '../../support/private-file';
import { KEY, putKeyInto } from '../data-dir';
import { changesOf, closeAll, newDirectory, registerClient, startServer } from './fixtures';

afterEach(closeAll);

/** A fresh directory with a state: its key takes long to generate. */
function directoryWithState(): string {
  const dataDir = newDirectory();
  putKeyInto(dataDir);
  return dataDir;
}

function openStore(write: typeof writeDurably, dataDir = newDirectory(), clock = Date.now): Promise<Store> {
  const newKeys = () => Promise.resolve({ signing: KEY, retired: [] });
  return Store.open({ dataDir, clock, logger: recordingLogger(), newKeys, write });
}

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
    const dataDir = directoryWithState();
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
      putKeyInto(dataDir);
      await startServer({ dataDir });
    },
  );

  it('is refused when it belongs to another user, who could change its mode', async () => {
    const dataDir = newDirectory();
    const own = lstatSync(dataDir).uid;
    await expect(prepareDataDirectory(dataDir, own + 1)).rejects.toThrow(
      new Error(
        `the data directory ${dataDir} belongs to another user (uid ${own}, this process has ${own + 1}): choose a directory of your own, or run chown ${own + 1} ${dataDir}`,
      ),
    );
    expect(readdirSync(dataDir)).toEqual([]);
    await prepareDataDirectory(dataDir, own);
  });
});

describe('changes that arrive together', () => {
  const row = (clientId: string): ClientRow => ({ clientId }) as unknown as ClientRow;

  it('go to disk one after the other, are invisible until then, and each has its own outcome', async () => {
    const time = fakeTime();
    const written: (() => void)[] = [];
    let slow = false;
    const write = () => (slow ? new Promise<void>((resolve) => written.push(resolve)) : Promise.resolve());
    const store = await openStore(write, newDirectory(), time.clock);
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

describe('a durable file', () => {
  /** A new file for the owner only, flushed before the call resolves. */
  const WRITE = 'write {"flag":"wx","mode":384,"flush":true}';
  type FileSystem = NonNullable<Parameters<typeof writeDurably>[2]>;

  const full = Object.assign(new Error('no space left'), { code: 'ENOSPC', syscall: 'write' });

  /** The real file system, whose calls are recorded in order. `refuse` makes one kind of call fail. */
  function recordingFileSystem(refuse?: string): { fs: FileSystem; calls: string[] } {
    const calls: string[] = [];
    function record(call: string): void {
      calls.push(call);
      if (call === refuse) throw full;
    }
    const fs = {
      async writeFile(path: string, text: string, options: WriteFileOptions) {
        await promises.writeFile(path, text.slice(0, 2), options);
        record(`write ${JSON.stringify(options)}`);
        await promises.writeFile(path, text);
      },
      async open(path: string, flags: string) {
        calls.push('open directory');
        const handle = await promises.open(path, flags);
        return {
          async sync() {
            record('sync directory');
            await handle.sync();
          },
          async close() {
            await handle.close();
            record('close directory');
          },
        };
      },
      async rename(from: string, to: string) {
        record('rename');
        await promises.rename(from, to);
      },
      rm: promises.rm,
    };
    return { fs: fs as unknown as FileSystem, calls };
  }

  it('replaces the file, readable for its owner only, and leaves nothing next to it', async () => {
    const path = join(newDirectory(), 'state.json');
    writeFileSync(path, 'old', { mode: 0o644 });
    await writeDurably(path, 'new');
    expect(readFileSync(path, 'utf8')).toBe('new');
    expectPrivate(path);
    expect(readdirSync(join(path, '..'))).toEqual(['state.json']);
  });

  it('a token server flushes its new file before it renames it, and the directory after that', async () => {
    const { fs, calls } = recordingFileSystem();
    const store = await openStore((path, text) => writeDurably(path, text, fs));
    calls.length = 0;
    await store.change(({ keys }) => ({ keys, value: undefined }));
    expect(calls).toEqual([WRITE, 'rename', 'open directory', 'sync directory', 'close directory']);
    await store.close();
  });

  it('writes to a new file with a random name: neither a file nor a link that waits there is written through', async () => {
    const names: string[] = [];
    const rename: FileSystem['rename'] = (from, to) => {
      names.push(String(from));
      return promises.rename(from, to);
    };
    const path = join(newDirectory(), 'state.json');
    await writeDurably(path, 'one', { ...promises, rename });
    await writeDurably(path, 'two', { ...promises, rename });
    expect(new Set(names).size).toBe(2);
    expect(names.every((name) => /^state\.json\.[0-9a-f]{12}\.tmp$/.test(name.slice(path.length - 10)))).toBe(true);

    const target = join(newDirectory(), 'elsewhere');
    writeFileSync(target, 'mine');
    const writeFile: FileSystem['writeFile'] = (name, text, options) => {
      symlinkSync(target, name as string);
      return promises.writeFile(name, text, options);
    };
    await expect(writeDurably(path, 'three', { ...promises, writeFile })).rejects.toMatchObject({ code: 'EEXIST' });
    expect([readFileSync(target, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['mine', 'two']);
  });

  it('replaces a symbolic link instead of following it', async () => {
    const [target, path] = [join(newDirectory(), 'elsewhere'), join(newDirectory(), 'state.json')];
    writeFileSync(target, 'mine');
    symlinkSync(target, path);
    await writeDurably(path, 'new');
    expect([readFileSync(target, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['mine', 'new']);
    expect(lstatSync(path).isSymbolicLink()).toBe(false);
  });

  it.each([WRITE, 'rename'])(
    'leaves the old file as it was when the disk is full at: %s, and removes the new one',
    async (call) => {
      const path = join(newDirectory(), 'state.json');
      writeFileSync(path, 'old');
      await expect(writeDurably(path, 'new', recordingFileSystem(call).fs)).rejects.toBe(full);
      expect(readFileSync(path, 'utf8')).toBe('old');
      expect(readdirSync(join(path, '..'))).toEqual(['state.json']);
      await writeDurably(path, 'new');
      expect(readFileSync(path, 'utf8')).toBe('new');
    },
  );

  it('does without the flush of a directory where the system has none', async () => {
    const path = join(newDirectory(), 'state.json');
    await writeDurably(path, 'new', recordingFileSystem('sync directory').fs);
    expect(readFileSync(path, 'utf8')).toBe('new');
  });

  it('a start removes what earlier processes have left half-written, and nothing else', async () => {
    const dataDir = directoryWithState();
    const names = ['state.json.0123456789ab.tmp', 'state.json.tmp', 'state.json.bak', 'other.tmp'];
    for (const name of names) writeFileSync(join(dataDir, name), 'a piece');
    await startServer({ dataDir });
    const files = readdirSync(dataDir).filter((name) => !name.startsWith('lock.'));
    expect(files.sort()).toEqual(['.gitignore', 'other.tmp', 'state.json', 'state.json.bak']);
  });

  it('a state file that is cut off anywhere is refused, and not overwritten', async () => {
    const server = await startServer();
    await registerClient(server);
    const { dataDir } = server;
    const path = join(dataDir, 'state.json');
    await server.auth.close();
    const whole = readFileSync(path);
    for (let tenths = 0; tenths < 10; tenths++) {
      const part = whole.subarray(0, Math.floor((whole.length * tenths) / 10));
      writeFileSync(path, part);
      await expect(startServer({ dataDir })).rejects.toThrow(
        `the state of the token server in ${path} cannot be used: it is not a JSON object; restore it, or delete it to begin anew`,
      );
      expect(readFileSync(path).equals(part)).toBe(true);
    }
    writeFileSync(path, whole);
    expect((await startServer({ dataDir })).auth.list()).toHaveLength(1);
  });

  it('a data directory that is a file is refused with what to do', async () => {
    const dataDir = join(newDirectory(), 'file');
    writeFileSync(dataDir, '');
    await expect(startServer({ dataDir })).rejects.toThrow(
      `the data directory ${dataDir} cannot be written (EEXIST): make it writable, or choose another`,
    );
  });

  it('a first state that finds no room is refused, and the next start begins it', async () => {
    const dataDir = newDirectory();
    await expect(openStore(() => Promise.reject(full), dataDir)).rejects.toThrow(
      `the data directory ${dataDir} cannot be written (ENOSPC): make room on its disk`,
    );
    expect(readdirSync(dataDir)).toEqual(['.gitignore']);
    await registerClient(await startServer({ dataDir }));
  });
});

describe('the state file', () => {
  const OTHER_FORMAT = 'its "format" is not 2: another version has written it, use that one (UPGRADE.md)';

  /** The text of a state with a live client, a deleted one, and a retired key. */
  let example: Promise<string> | undefined;
  const exampleText = (): Promise<string> => (example ??= newExampleText());

  async function newExampleText(): Promise<string> {
    const server = await startServer();
    await registerClient(server);
    await server.post('/clients/pos-17/secrets');
    await registerClient(server, { client_id: 'gone' });
    await server.delete('/clients/gone');
    await server.auth.rotateKeys();
    return readFileSync(join(server.dataDir, 'state.json'), 'utf8');
  }

  /** Reads a state file with this text; rejects with what is wrong with it. */
  async function read(text: string): Promise<State> {
    const path = join(newDirectory(), 'state.json');
    writeFileSync(path, text);
    const kept = await readState(path).catch(({ message }: Error) => {
      const [, wrong] = message.split(`the state of the token server in ${path} cannot be used: `);
      throw new Error(wrong?.replace('; restore it, or delete it to begin anew', ''));
    });
    return kept!.state;
  }

  it('a state is read as it was written', async () => {
    const text = await exampleText();
    const { keys, clients } = await read(text);
    expect({ format: 2, keys, clients: [...clients.values()] }).toEqual(JSON.parse(text));
  });

  it.each<[string, (text: string) => string, string]>([
    ['of format 1', (text) => text.replace('"format":2', '"format":1'), OTHER_FORMAT],
    ['of format 3', (text) => text.replace('"format":2', '"format":3'), OTHER_FORMAT],
    ['that is a list', () => '[]', 'it is not a JSON object'],
    ['that is text', () => '"text"', 'it is not a JSON object'],
  ])('a state %s is refused', async (_what, change, message) => {
    await expect(read(change(await exampleText()))).rejects.toThrow(new Error(message));
  });
});
