import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { requireCommand } from '../setup/packages';
import { freePort } from '../support/free-port';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

const run = promisify(execFile);

let folder: string | undefined;
let certificateFile: string;
let redis: RedisServer | undefined;
let url: string;

beforeAll(async () => {
  requireCommand('openssl', 'apt-get install openssl');
  folder = await mkdtemp(join(tmpdir(), 'tillgate-tls-'));
  certificateFile = join(folder, 'certificate.pem');
  const keyFile = join(folder, 'key.pem');
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
  await run('openssl', ['req', '-x509', ...key, '-out', certificateFile, '-days', '2', ...subject]);
  const port = await freePort();
  redis = await startRedis({ tls: { port, certificateFile, keyFile } });
  await redis.command('ACL', 'SETUSER', 'shop', 'on', '>s3cret', 'allkeys', 'allchannels', 'allcommands');
  url = `rediss://shop:s3cret@localhost:${port}/0`;
});

afterAll(async () => {
  await redis?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** What a process of its own says, which also trusts these certificates. */
async function publishAndRead(trusted: string): Promise<string> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: trusted };
  const script = join(__dirname, 'tls-client.ts');
  return (await run(process.execPath, ['--conditions=source', '--import', 'tsx', script, url], { env })).stdout;
}

describe('a rediss: URL', () => {
  it('is served with TLS and its credentials', async () => {
    expect(await publishAndRead(certificateFile)).toBe('[["pos",5]]');
  });

  it('is refused when the certificate is not trusted, and its password is not told', async () => {
    const failure = await publishAndRead('');
    expect(failure).toMatch(
      /^SourceError: Redis: XADD: no response within 5000 ms; the connection failed: Error \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/,
    );
    expect(failure).not.toContain('s3cret');
  });
});
