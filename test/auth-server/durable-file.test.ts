import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../../src/auth-server/durable-file';
import { closeAll, newDirectory, registerClient, startServer } from './fixtures';

afterEach(closeAll);

/** A file whose next write finds the disk full: what is written beside it goes to a device that takes nothing. */
function onFullDisk(path: string): void {
  symlinkSync('/dev/full', `${path}.tmp`);
}

it('replaces the file, readable for its owner only, and leaves nothing beside it', async () => {
  const path = join(newDirectory(), 'state.json');
  writeFileSync(path, 'old', { mode: 0o644 });
  await writeDurably(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(path, '..'))).toEqual(['state.json']);
});

it('writes over what an earlier process has left half-written beside it', async () => {
  const path = join(newDirectory(), 'state.json');
  writeFileSync(`${path}.tmp`, 'a piece of something longer');
  await writeDurably(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(existsSync(`${path}.tmp`)).toBe(false);
});

it('leaves the old file as it was when the disk is full, and removes what it has begun', async () => {
  const path = join(newDirectory(), 'state.json');
  writeFileSync(path, 'old');
  onFullDisk(path);
  await expect(writeDurably(path, 'new')).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(readdirSync(join(path, '..'))).toEqual(['state.json']);
  await writeDurably(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
});

it('a token server whose disk is full answers 503 to changes, keeps its file to the byte, and works again with room', async () => {
  const server = await startServer();
  const client = await registerClient(server);
  const path = join(server.dataDir, 'state.json');
  const before = readFileSync(path);
  onFullDisk(path);
  const refused = await server.patch('/clients/pos-17', { description: 'new' });
  expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
  expect(readFileSync(path).equals(before)).toBe(true);
  await server.accessToken(client);
  expect((await server.patch('/clients/pos-17', { description: 'new' })).status).toBe(200);
});

it('a state file that is cut off anywhere is refused, and not overwritten', async () => {
  const server = await startServer();
  await registerClient(server);
  const { dataDir } = server;
  const path = join(dataDir, 'state.json');
  await server.auth.close();
  const whole = readFileSync(path);
  for (let tenths = 0; tenths < 10; tenths++) {
    writeFileSync(path, whole);
    truncateSync(path, Math.floor((whole.length * tenths) / 10));
    await expect(startServer({ dataDir })).rejects.toThrow(
      `the state of the token server in ${path} cannot be used: it is no valid JSON; restore it, or delete it to begin anew`,
    );
    expect(readFileSync(path).equals(whole.subarray(0, Math.floor((whole.length * tenths) / 10)))).toBe(true);
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
  mkdirSync(dataDir, { recursive: true });
  onFullDisk(join(dataDir, 'state.json'));
  await expect(startServer({ dataDir })).rejects.toThrow(
    `the data directory ${dataDir} cannot be written (ENOSPC): make room on its disk`,
  );
  expect(readdirSync(dataDir)).toEqual([]);
  await registerClient(await startServer({ dataDir }));
});
