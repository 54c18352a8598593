// Gates whose issuers serve TLS with several certificates, and on IPv6: prints a line of JSON for each. `node certificates-process.cjs <folder of
// the gate> <folder of the certificates>`; NODE_EXTRA_CA_CERTS, which Node reads once, says which certificates are trusted.
const { generateKeyPairSync, sign } = require('node:crypto');
const { once } = require('node:events');
const { readFileSync } = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const { join } = require('node:path');

const [folder, certificates] = process.argv.slice(2);
const { authenticate, requireScope } = require(join(folder, 'index'));
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256', use: 'sig' };

/** Name of the certificate, host in the URL of the issuer. */
const SERVERS = [
  ['good', 'localhost'],
  ['good', '[::1]'],
  ['other', 'localhost'],
  ['expired', 'localhost'],
  ['unknown', 'localhost'],
  [undefined, '[::1]'],
];

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function tokenOf(issuer) {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: 'api', sub: 'c', client_id: 'c', jti: '1', scope: 'orders:read' };
  const input = `${encode({ alg: 'ES256', typ: 'at+jwt', kid: 'k' })}.${encode({ ...claims, generation: 1_700_000_000_000, iat: now - 5, exp: now + 600 })}`;
  return `${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

async function listen(server) {
  await once(server.listen(0, '::'), 'listening');
  return server.address().port;
}

function get(port, token) {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = http.get({ host: '127.0.0.1', port, headers, agent: false }, (res) => {
      let text = '';
      res.on('data', (chunk) => (text += chunk)).on('end', () => resolve({ status: res.statusCode, text }));
    });
    sent.on('error', reject);
  });
}

async function report(certificate, host, way, options) {
  let issuer;
  const serve = (req, res) => {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify(req.url === '/jwks' ? { keys: [jwk] } : { issuer, jwks_uri: `${issuer}/jwks` }));
  };
  const pem = (name) => readFileSync(join(certificates, name));
  const tls = certificate && { key: pem(`${certificate}.key`), cert: pem(`${certificate}.pem`) };
  const port = await listen(tls ? https.createServer(tls, serve) : http.createServer(serve));
  issuer = `${tls ? 'https' : 'http'}://${host}:${port}`;
  const gate = authenticate({ issuer, audience: 'api', logger: false, ...options });
  const failure = await gate.ready({ timeoutMs: 5_000 }).then(
    () => undefined,
    (error) => error.message,
  );
  let reached = 0;
  const guard = requireScope('orders:read');
  const api = await listen(
    http.createServer((req, res) => gate(req, res, () => guard(req, res, () => (reached++, res.end())))),
  );
  const { status, text } = await get(api, tokenOf(issuer));
  await gate.close();
  const code = text === '' ? undefined : JSON.parse(text).code;
  const ofNode = /\b[A-Z]+(?:_[A-Z]+)+\b/.exec(failure ?? '')?.[0];
  return JSON.stringify({ certificate, host, way, status, code, reached, ofNode });
}

async function main() {
  // One way after the other: where the app has used fetch, so does the gate.
  for (const [way, options] of Object.entries({ transport: {}, injected: { fetch: (...given) => fetch(...given) } })) {
    const all = SERVERS.map(([certificate, host]) => report(certificate, host, way, options));
    console.log((await Promise.all(all)).join('\n'));
  }
  process.exit();
}

void main();
