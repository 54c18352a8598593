import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import certificates from '../../support/certificates.json';
import { requireCommand } from '../setup/packages';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';

/** An nginx of our own. */
export interface NginxServer {
  readonly port: number;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/**
 * Starts Debian's nginx with the server block of a page, in a folder of its own. Only the addresses are others: a free
 * port of this machine for 443, and that of the app for 3000.
 *
 * @throws Error when the block does not have these addresses, once each
 */
export async function startNginx(block: string, apiPort: number): Promise<NginxServer> {
  requireCommand('nginx', 'apt-get install nginx');
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-nginx-'));
  const port = await freePort();
  const server = replaceOnce(
    replaceOnce(block, 'listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`),
    'http://127.0.0.1:3000;',
    `http://127.0.0.1:${apiPort};`,
  );
  await mkdir(join(folder, 'tls'));
  await writeFile(join(folder, 'tls/server.pem'), certificates.server.certificate);
  await writeFile(join(folder, 'tls/server.key'), certificates.server.privateKey, { mode: 0o600 });
  await writeFile(join(folder, 'nginx.conf'), configuration(server));

  const child = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log'], { stdio: 'ignore' });
  // A server must not outlive the tests, whatever ends them.
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  const exited = once(child, 'exit');
  await eventually('nginx responds', () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    return isOpen(port);
  });
  return {
    port,
    async stop() {
      process.off('exit', onExit);
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function replaceOnce(text: string, from: string, to: string): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`the block has ${parts.length - 1} times "${from}"`);
  return parts.join(to);
}

/** What surrounds the server block; nothing outside the folder is written. One process, so that no worker survives. */
function configuration(server: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${kind};`);
  return `daemon off;
master_process off;
pid nginx.pid;
events {}
http {
access_log off;
${temporary.join('\n')}
${server}}
`;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
