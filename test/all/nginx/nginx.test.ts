import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import certificates from '../../support/certificates.json';
import { gateApp } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { listen } from '../../support/listen';
import type { Listening } from '../../support/listen';
import { expectRefusal } from '../../support/refusals';
import { mtls } from '../../../src/gate/possession';
import { certificateBehind } from '../../support/mtls-recipes';
import type { Response } from 'supertest';
import { startNginx } from './nginx-server';
import type { NginxServer } from './nginx-server';

const [OWN, OTHER] = [certificates['till-1'], certificates['till-2']];
const THUMBPRINT = createHash('sha256').update(new X509Certificate(OWN.certificate).raw).digest('base64url');
const BOUND = token({ claims: { cnf: { 'x5t#S256': THUMBPRINT } } });

/** The block of docs/possession.md, as it is there. */
const page = readFileSync(join(__dirname, '../../../docs/possession.md'), 'utf8');
const [, DOCUMENTED = ''] = /^```nginx\n([^]*?)^```$/m.exec(page) ?? [];
const through = gateApp({ possession: [mtls({ certificate: certificateBehind('nginx') })] });
let api: Listening;
let documented: NginxServer;
let older: NginxServer;

beforeAll(async () => {
  api = await listen(through.app);
  const addresses = { 'http://127.0.0.1:3000;': `${api.url};` };
  documented = await startNginx(DOCUMENTED, '443', addresses);
  older = await startNginx(DOCUMENTED.replace('$ssl_client_escaped_cert', '$ssl_client_cert'), '443', addresses);
});

beforeEach(() => {
  through.reached.length = 0;
});

afterAll(async () => {
  await Promise.all([documented?.stop(), older?.stop()]);
  await api.close();
});

/** GET /v1/orders with the bound token, in supertest's shape. */
function get(
  { port }: NginxServer,
  client?: { certificate: string; privateKey: string },
  headers: Record<string, string> = {},
): Promise<Response> {
  const tls = { rejectUnauthorized: false, ...(client && { cert: client.certificate, key: client.privateKey }) };
  const sent = { authorization: `Bearer ${BOUND}`, ...headers };
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/v1/orders', headers: sent, agent: false, ...tls };
    const req = httpsRequest(options, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      res.on('end', () => {
        const isJson = /json/.test(res.headers['content-type'] ?? '');
        const body = (isJson ? JSON.parse(text) : {}) as unknown;
        resolve({ status: res.statusCode, headers: res.headers, text, body } as unknown as Response);
      });
    });
    req.on('error', reject).end();
  });
}

describe('nginx as docs/possession.md configures it, before the gate of the same page', () => {
  it('is the gate of the page', () => {});

  it('forwards the certificate of the client, to which its token is bound', async () => {
    for (let use = 0; use < 3; use++) expect((await get(documented, OWN)).status).toBe(200);
    expect(through.reached).toEqual(Array(3).fill('GET /v1/orders'));
  });

  it('forwards the certificate of another client, and the token is refused', async () => {
    expectRefusal(await get(documented, OTHER), 'wrong_binding', through);
  });

  it.each(['X-Client-Certificate', 'x-client-certificate'])('replaces what a client sends as %s', async (name) => {
    const forged = { [name]: encodeURIComponent(OWN.certificate) };
    expectRefusal(await get(documented, OTHER, forged), 'wrong_binding', through);
    expectRefusal(await get(documented, undefined, forged), 'sender_constrained', through);
  });

  it('forwards nothing of a client without a certificate', async () => {
    expectRefusal(await get(documented), 'sender_constrained', through);
  });
});

it('with $ssl_client_cert each request with a certificate is a 400 of Node, as the page says', async () => {
  expect((await get(older, OWN)).status).toBe(400);
  expect(through.reached).toEqual([]);
  expectRefusal(await get(older), 'sender_constrained', through);
});
