import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changesOf, closeAll, registerClient, startServer } from '../../cli/auth-server/fixtures';
import type { TestServer } from '../../cli/auth-server/fixtures';

const KILOBYTES = 64;

/** A file system of its own, so small that it is full soon; `undefined` is all right, else the reason why not. */
function mountSmallDisk(directory: string): string | undefined {
  const options = `size=${KILOBYTES}k,mode=700`;
  const { status, stderr, error } = run('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', directory);
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}

function run(command: string, ...args: string[]) {
  return spawnSync(command, args, { encoding: 'utf8' });
}

function remount(option: 'ro' | 'rw'): void {
  const { status, stderr } = run('mount', '-o', `remount,${option}`, disk);
  if (status !== 0) throw new Error(`remount,${option}: ${stderr}`);
}

const probe = mkdtempSync(join(tmpdir(), 'tillgate-disk-'));
const whyNot = mountSmallDisk(probe);
run('umount', probe);
rmSync(probe, { recursive: true });
if (whyNot !== undefined)
  console.warn(`A full and a read-only disk are not tested: no tmpfs can be mounted here (${whyNot})`);

let disk: string;
let server: TestServer;
const state = (): Buffer => readFileSync(join(disk, 'state.json'));
const filler = (): string => join(disk, 'filler');

/** Takes all the room that is left. */
function fill(): void {
  expect(() => writeFileSync(filler(), Buffer.alloc(KILOBYTES * 1024))).toThrow('ENOSPC');
}

/** Every kind of change, each refused with 503 and without an effect, while every kind of read goes on. */
async function expectReadsOnly(client: Awaited<ReturnType<typeof registerClient>>): Promise<void> {
  const before = state();
  for (const change of changesOf(server)) {
    const { status, body, headers } = await change();
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'storage_unavailable', '5']);
  }
  expect(state().equals(before)).toBe(true);
  const token = await server.accessToken(client);
  expect(await server.introspect(client, token)).toMatchObject({ active: true });
  for (const path of ['/clients', '/generations', '/.well-known/openid-configuration/jwks']) {
    expect((await server.get(path)).status).toBe(200);
  }
}

(whyNot === undefined ? describe : describe.skip)('a disk of its own under the data directory', () => {
  beforeEach(async () => {
    disk = mkdtempSync(join(tmpdir(), 'tillgate-disk-'));
    expect(mountSmallDisk(disk)).toBeUndefined();
    server = await startServer({ dataDir: disk });
  });
  afterEach(async () => {
    await closeAll();
    run('umount', disk);
    rmSync(disk, { recursive: true });
  });

  it('that is full: changes are 503, reads go on, the file stays to the byte, and with room changes work again', async () => {
    const client = await registerClient(server);
    fill();
    await expectReadsOnly(client);
    rmSync(filler());
    expect((await server.patch('/clients/pos-17', { description: 'new' })).status).toBe(200);
    server = await server.restart();
    expect(server.auth.list()).toMatchObject([{ client_id: 'pos-17', description: 'new' }]);
  });

  it('that fills up while clients register: exactly the clients that got 201 are there after a restart', async () => {
    const registered: string[] = [];
    let last = 201;
    while (last === 201) {
      const id = `client-${registered.length}`;
      const response = await server.post('/clients', { client_id: id, scope: 'orders:read' });
      last = response.status;
      if (last === 201) registered.push(id);
    }
    expect(last).toBe(503);
    expect(registered.length).toBeGreaterThan(10);
    server = await server.restart();
    const listed = server.auth.list().map(({ client_id }) => client_id);
    expect(listed.sort()).toEqual([...registered].sort());
  });

  it('that turns read-only: the same; stopping and starting work too once it can be written', async () => {
    const client = await registerClient(server);
    remount('ro');
    try {
      await expectReadsOnly(client);
      await server.auth.close();
      await expect(startServer({ dataDir: disk })).rejects.toThrow(
        `the data directory ${disk} cannot be written (EROFS): make it writable, or choose another`,
      );
    } finally {
      remount('rw');
    }
    server = await server.restart();
    await server.accessToken(client);
    expect((await server.patch('/clients/pos-17', { description: 'new' })).status).toBe(200);
  });

  it('that is full at the start: refused with what to do, and the state that is there stays', async () => {
    const client = await registerClient(server);
    await server.auth.close();
    const before = state();
    fill();
    await expect(startServer({ dataDir: disk })).rejects.toThrow(
      `the data directory ${disk} cannot be written (ENOSPC): make room on its disk`,
    );
    expect(state().equals(before)).toBe(true);
    rmSync(filler());
    server = await server.restart();
    await server.accessToken(client);
  });
});
