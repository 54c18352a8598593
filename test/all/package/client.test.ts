import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';
import { INSTALL_FLAGS, install } from './consumer';
import { execute, npm } from './npm';
import { packTillgate } from './tarball';

/** Calls, changes the Description, and calls 20 times in parallel; prints the statuses and the token requests. */
const PROGRAM = `
const [, , authUrl, baseUrl, clientId, clientSecret] = process.argv;
let tokenRequests = 0;
const counted = (url, init) => {
  if (String(url).endsWith('/connect/token')) tokenRequests += 1;
  return fetch(url, init);
};
const options = { tokenUrl: authUrl + '/connect/token', baseUrl, clientId, clientSecret, scope: 'orders:read', fetch: counted };
async function main() {
  const client = createClient(options);
  const call = async () => (await client.fetch('/v1/orders')).status;
  const before = await call();
  const changed = await fetch(authUrl + '/clients/' + clientId, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ description: process.version + process.argv[1] }),
  });
  const after = await Promise.all(Array.from({ length: 20 }, call));
  console.log(JSON.stringify({ before, changed: changed.status, after, tokenRequests }));
}
main();
`;
const NODES = [20, 22, 24, 26];

describe('@tillgate/client in an empty project', () => {
  let folder: string;
  let tillgate: RunningTillgate<DevReport>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tillgate-client-'));
    await writeFile(join(folder, 'package.json'), '{ "private": true }');
    const [tarball = ''] = await packTillgate('client');
    expect(await install(folder, [tarball])).toMatchObject({ exitCode: 0 });
    await writeFile(join(folder, 'caller.mjs'), `import { createClient } from '@tillgate/client';\n${PROGRAM}`);
    await writeFile(join(folder, 'caller.cjs'), `const { createClient } = require('@tillgate/client');\n${PROGRAM}`);
    await Promise.all(NODES.map(installNode));
    const variables = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_DATA_DIR: join(folder, 'data') } as const;
    tillgate = await startTillgate<DevReport>('dev', variables);
  }, 600_000);

  afterAll(async () => {
    await tillgate?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const nodeFolder = (major: number): string => join(folder, `node-${major}`);

  async function installNode(major: number): Promise<void> {
    await mkdir(nodeFolder(major), { recursive: true });
    await writeFile(join(nodeFolder(major), 'package.json'), '{ "private": true }');
    const { exitCode, errors } = await npm(nodeFolder(major), 'install', `node@${major}`, ...INSTALL_FLAGS);
    if (exitCode !== 0) throw new Error(`this suite needs node@${major} from the registry of npm: ${errors}`);
  }

  it('is the only package there, and small', async () => {
    const packages = (await readdir(join(folder, 'node_modules'))).filter((name) => !name.startsWith('.'));
    expect(packages).toEqual(['@tillgate']);
    const root = join(folder, 'node_modules/@tillgate/client');
    expect(await readdir(join(folder, 'node_modules/@tillgate'))).toEqual(['client']);
    const source = await readFile(join(root, 'dist/index.mjs'));
    expect(source.length).toBeLessThan(16 * 1024);
    expect(gzipSync(source).length).toBeLessThan(6 * 1024);
    const files = (await readdir(root, { recursive: true })).map((name) => stat(join(root, name)));
    const bytes = (await Promise.all(files)).reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
    expect(bytes).toBeLessThan(100 * 1024);
  });

  it.each(NODES.flatMap((major) => [[major, 'caller.mjs'] as const, [major, 'caller.cjs'] as const]))(
    'on Node %i, by %s: 20 calls after a change cost one token request',
    async (major, program) => {
      const { auth_url, base_url, clients } = tillgate.report;
      const { client_id = '', client_secret = '' } = clients.find((each) => each.client_id === 'kiosk') ?? {};
      const args = [join(folder, program), auth_url, base_url, client_id, client_secret];
      const { output, errors } = await execute(folder, join(nodeFolder(major), 'node_modules/node/bin/node'), args);
      expect(errors).toBe('');
      const after = Array.from({ length: 20 }, () => 200);
      expect(JSON.parse(output)).toEqual({ before: 200, changed: 200, after, tokenRequests: 2 });
    },
  );
});
