import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import certificates from '../../support/certificates.json';
import { requireCommand } from '../setup/packages';
import { freePort } from '../support/free-port';
import { startServer } from '../support/start-server';

/** An nginx of our own. */
export interface NginxServer {
  readonly port: number;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/**
 * Starts Debian's nginx with a configuration that users have, in a folder of its own. Only the addresses are others.
 *
 * @param listen - where it listens there: a free port of this machine is taken instead
 * @param addresses - what to put in the place of other addresses
 * @throws Error when the configuration does not have each of these once
 */
export async function startNginx(
  server: string,
  listen: string,
  addresses: Readonly<Record<string, string>>,
): Promise<NginxServer> {
  requireCommand('nginx', 'apt-get install nginx');
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-nginx-'));
  const port = await freePort();
  const replaced = Object.entries({ [`listen ${listen}`]: `listen 127.0.0.1:${port}`, ...addresses });
  const local = replaced.reduce((text, [from, to]) => replaceOnce(text, from, to), server);
  await mkdir(join(folder, 'tls'));
  await writeFile(join(folder, 'tls/server.pem'), certificates.server.certificate);
  await writeFile(join(folder, 'tls/server.key'), certificates.server.privateKey, { mode: 0o600 });
  await writeFile(join(folder, 'nginx.conf'), configuration(local));

  return startServer({ command: 'nginx', args: ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log'], folder, port });
}

function replaceOnce(text: string, from: string, to: string): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`the configuration has ${parts.length - 1} times "${from}"`);
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
