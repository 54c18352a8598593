import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { startServer } from '../../src/app/serve';
import type { RunningServer } from '../../src/app/serve';
import { followTls, readTls } from '../../src/app/tls';
import certificates from '../support/certificates.json';
import { fakeTime } from '../support/fake-time';
import { recordingLogger } from '../support/log';

const directory = mkdtempSync(join(tmpdir(), 'tillgate-tls-'));
afterAll(() => rmSync(directory, { recursive: true }));

type Name = keyof typeof certificates;

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

/** The files of a server certificate, each test with its own. */
function filesOf(test: string, { certificate, privateKey }: (typeof certificates)[Name] = certificates.server) {
  const clientAuthorities = undefined as string | undefined;
  return { certificate: file(`${test}.crt`, certificate), key: file(`${test}.key`, privateKey), clientAuthorities };
}

const open: (RunningServer | TLSSocket)[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await ('url' in one ? one.close() : one.destroy());
});

async function connection(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  open.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** Sends a request on a connection; the status line, or `closed`. */
async function ask(socket: TLSSocket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [data] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [Buffer | boolean];
  return Buffer.isBuffer(data) ? String(data).split('\r\n')[0]! : 'closed';
}

describe('a server with TILLGATE_TLS_CERT_FILE', () => {
  it('speaks TLS 1.2 or later, says so in its URL, and stops while a handshake is under way', async () => {
    const server = await startServer((_req, res) => res.end('hello'), {
      host: '127.0.0.1',
      port: 0,
      tls: filesOf('speaks'),
      drainDeadlineMs: 200,
    });
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    const socket = await connection(server.port, { ca: certificates.server.certificate, rejectUnauthorized: true });
    expect([socket.authorized, await ask(socket)]).toEqual([true, 'HTTP/1.1 200 OK']);
    const old = connect({ port: server.port, host: '127.0.0.1', maxVersion: 'TLSv1.1', rejectUnauthorized: false });
    await expect(once(old, 'secureConnect')).rejects.toThrow();
    await server.close();
  });

  it('asks clients for a certificate with TILLGATE_TLS_CA_FILE, accepts none, and closes on one of another authority', async () => {
    const clientAuthorities = file('ca.crt', certificates['till-1'].certificate);
    const tls = { ...filesOf('clients'), clientAuthorities };
    const seen: (string | undefined)[] = [];
    const server = await startServer(
      (req, res) => {
        seen.push((req.socket as TLSSocket).getPeerX509Certificate()?.subject);
        res.end();
      },
      { host: '127.0.0.1', port: 0, tls },
    );
    open.push(server);
    const as = ({ certificate, privateKey }: (typeof certificates)[Name]) => ({ cert: certificate, key: privateKey });
    expect(await ask(await connection(server.port, as(certificates['till-1'])))).toBe('HTTP/1.1 200 OK');
    expect(await ask(await connection(server.port))).toBe('HTTP/1.1 200 OK');
    expect(await ask(await connection(server.port, as(certificates['till-2'])))).toBe('closed');
    expect(seen).toEqual([expect.stringContaining('CN='), undefined]);
  });

  it('uses a replaced certificate for new connections, and drops no open one; a wrong one changes nothing', async () => {
    const files = filesOf('replaced');
    const options = readTls(files);
    const server = createServer(options, (_req, res) => res.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const log = recordingLogger();
    const time = fakeTime();
    const stop = followTls(server, files, options, { logger: log, schedule: time.schedule });
    await time.advance(5_000);
    expect(log.entries).toEqual([]);
    const before = await connection(port);
    const first = before.getPeerX509Certificate()?.fingerprint256;

    writeFileSync(files.certificate, 'no certificate');
    await time.advance(10_000);
    expect(log.entries).toHaveLength(1);
    expect((await connection(port)).getPeerX509Certificate()?.fingerprint256).toBe(first);

    writeFileSync(files.key, certificates['till-1'].privateKey);
    writeFileSync(files.certificate, certificates['till-1'].certificate);
    await time.advance(5_000);
    expect(log.entries.at(-1)?.message).toBe('the certificate of the server was replaced');
    expect((await connection(port)).getPeerX509Certificate()?.fingerprint256).not.toBe(first);
    expect(await ask(before)).toBe('HTTP/1.1 200 OK');
    stop();
    expect(time.pending).toBe(0);
    for (const one of open.splice(0)) (one as TLSSocket).destroy();
    server.close();
    expect(log.entries[0]?.message).toBe('the certificate of the server could not be replaced, the former one stays');
  });

  it('says which file is wrong', () => {
    const files = filesOf('wrong');
    expect(() => readTls({ ...files, key: join(directory, 'missing') })).toThrow(
      /TILLGATE_TLS_KEY_FILE: ".*missing" cannot be read \(Error \(ENOENT\)\), expected a file in PEM/,
    );
    expect(() => readTls({ ...files, key: filesOf('other', certificates['till-1']).key })).toThrow(
      /TILLGATE_TLS_CERT_FILE: ".*wrong.crt" cannot be used with TILLGATE_TLS_KEY_FILE \(.*\), expected a certificate/,
    );
  });
});
