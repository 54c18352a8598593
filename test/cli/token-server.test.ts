import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { startTokenServer } from '../../src/cli/token-server';
import { readSettings } from '../../src/settings/settings';
import type { Settings } from '../../src/settings/settings';
import { memoryGenerations } from '../../src/generation';
import { settle } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import { newDataDir } from './data-dir';

const TILL = { client_id: 'till', scope: 'orders:read' };
const dataDir = newDataDir();
afterAll(() => rmSync(dataDir, { recursive: true }));

async function settingsWith(generations: string): Promise<Settings> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  const env = { TILLGATE_AUTH_PORT: String(port), TILLGATE_DATA_DIR: dataDir, TILLGATE_GENERATIONS: generations };
  return readSettings(env);
}

describe('the token server of dev, with a source in TILLGATE_GENERATIONS', () => {
  const opened: string[] = [];
  let closed = 0;

  /** A stand-in for a remote log: its contents outlive the token server. */
  let store = memoryGenerations();
  const held = () => store.read(undefined).changes;
  const start = async (logger = recordingLogger()) =>
    startTokenServer(await settingsWith('redis://till:geheim@store.test:6379'), logger, undefined, (url) => {
      opened.push(url);
      return { ...store, close: () => Promise.resolve(void closed++) };
    });

  it('publishes every change to it, and passes it to the API', async () => {
    const tokens = await start();
    const { generation } = await tokens.auth.register(TILL);
    const { changes } = await tokens.generations.reader().next(0);
    expect([changes, held()]).toEqual([[['till', generation]], [['till', generation]]]);
    await tokens.close();
    expect([opened, closed]).toEqual([['redis://till:geheim@store.test:6379'], 1]);
  });

  it('publishes at the start what is missing there', async () => {
    store = memoryGenerations();
    const tokens = await start();
    const stored = tokens.auth.list().map(({ client_id, generation }) => [client_id, generation]);
    while (held().length === 0) await settle();
    expect(held()).toEqual(stored);
    await tokens.close();
  });

  it('closes it when the start fails', async () => {
    const running = await start();
    const before = closed;
    // The data directory belongs to one process at a time.
    await expect(start()).rejects.toThrow(/in use/);
    expect(closed).toBe(before + 1);
    await running.close();
  });
});

it('a source that cannot be published to is a wrong configuration', async () => {
  const settings = await settingsWith('http://till:geheim@127.0.0.1:4999/generations');
  const failure: unknown = await startTokenServer(settings, recordingLogger(), undefined).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({
    name: 'ConfigurationError',
    problems: [
      'TILLGATE_GENERATIONS: got an http(s): address, which the embedded token server cannot publish to; expected redis(s): or postgres:; leave it out, or set TILLGATE_AUTH_URL',
    ],
  });
});
