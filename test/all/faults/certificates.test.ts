import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { requireCommand } from '../setup/packages';
import { COMPILED } from '../support/compiled';

const run = promisify(execFile);
const SCRIPT = join(__dirname, 'certificates-process.cjs');

const OWN_NAMES = 'DNS:localhost,IP:127.0.0.1,IP:::1';
/** By name: what it is for, and how many days from now on it is good. */
const CERTIFICATES = {
  good: [OWN_NAMES, 2],
  other: ['DNS:other.test', 2],
  expired: [OWN_NAMES, -1],
  unknown: [OWN_NAMES, 2],
};
const TRUSTED = ['good', 'other', 'expired'];

let folder: string;

async function makeCertificate(name: string, names: string, days: number): Promise<string> {
  const [key, request, certificate] = ['key', 'csr', 'pem'].map((end) => join(folder, `${name}.${end}`)) as [
    string,
    string,
    string,
  ];
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`];
  await run('openssl', ['req', '-new', ...ec, '-out', request, ...subject]);
  // `openssl req` makes none that has expired.
  const dates = ['-days', String(days), '-copy_extensions', 'copy'];
  await run('openssl', ['x509', '-req', '-in', request, '-signkey', key, ...dates, '-out', certificate]);
  return readFile(certificate, 'utf8');
}

beforeAll(async () => {
  requireCommand('openssl', 'apt-get install openssl');
  folder = await mkdtemp(join(tmpdir(), 'tillgate-certificates-'));
  const trusted: string[] = [];
  for (const [name, [names, days]] of Object.entries(CERTIFICATES)) {
    const certificate = await makeCertificate(name, names as string, days as number);
    if (TRUSTED.includes(name)) trusted.push(certificate);
  }
  await writeFile(join(folder, 'trusted.pem'), trusted.join(''));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** What becomes of a request, by certificate and host of the issuer: by the transport, then by an injected `fetch`. */
async function outcomes(trusted: string): Promise<readonly unknown[]> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: trusted };
  const { stdout } = await run(process.execPath, [SCRIPT, join(COMPILED, 'src/gate'), folder], { env });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

const accepted = { status: 200, reached: 1 };
const refused = (ofNode: string) => ({ status: 503, code: 'keys_unavailable', reached: 0, ofNode });

/** By the certificate and host of the issuer, over both ways. */
function overBoth(rows: readonly (readonly [string | undefined, string, object])[]): readonly object[] {
  return ['transport', 'injected'].flatMap((way) =>
    rows.map(([certificate, host, outcome]) => ({ ...(certificate && { certificate }), host, way, ...outcome })),
  );
}

it('an issuer with a certificate that NODE_EXTRA_CA_CERTS trusts serves keys, on IPv6 too; any other is 503, and the error names why', async () => {
  expect(await outcomes(join(folder, 'trusted.pem'))).toEqual(
    overBoth([
      ['good', 'localhost', accepted],
      ['good', '[::1]', accepted],
      ['other', 'localhost', refused('ERR_TLS_CERT_ALTNAME_INVALID')],
      ['expired', 'localhost', refused('CERT_HAS_EXPIRED')],
      ['unknown', 'localhost', refused('DEPTH_ZERO_SELF_SIGNED_CERT')],
      [undefined, '[::1]', accepted],
    ]),
  );
});

it('without NODE_EXTRA_CA_CERTS no certificate of its own makes an issuer trusted', async () => {
  expect(await outcomes('')).toEqual(
    overBoth([
      ['good', 'localhost', refused('DEPTH_ZERO_SELF_SIGNED_CERT')],
      ['good', '[::1]', refused('DEPTH_ZERO_SELF_SIGNED_CERT')],
      ['other', 'localhost', refused('DEPTH_ZERO_SELF_SIGNED_CERT')],
      ['expired', 'localhost', refused('CERT_HAS_EXPIRED')],
      ['unknown', 'localhost', refused('DEPTH_ZERO_SELF_SIGNED_CERT')],
      [undefined, '[::1]', accepted],
    ]),
  );
});
