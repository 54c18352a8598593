// What a process sends its requests with: prints a line of JSON for each step. `node scene.cjs <folder of the gate> <step> ...`
const { generateKeyPairSync, sign } = require('node:crypto');
const { once } = require('node:events');
const http = require('node:http');
const { setImmediate } = require('node:timers');
const { join, relative } = require('node:path');

const [folder, ...steps] = process.argv.slice(2);
/** undici of Node 26 has a second one. */
const DISPATCHERS = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256', use: 'sig' };
/** Which client has sent each request to the issuer: browsers' headers are sent by fetch alone. */
const clients = [];
let isDispatched = false;

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

async function listen(handler, port = 0) {
  const server = http.createServer(handler).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

function get(url, token) {
  return new Promise((resolve, reject) => {
    http
      .get(url, { headers: { authorization: `Bearer ${token}` } }, (res) => {
        res.resume().on('end', () => resolve(res.statusCode));
      })
      .on('error', reject);
  });
}

async function main() {
  const issuer = await listen((req, res) => {
    clients.push('sec-fetch-mode' in req.headers ? 'fetch' : 'http');
    const { pathname } = new URL(req.url, issuer);
    const page = {
      position: 'p',
      end: true,
      changes: [],
      mark: { format: 1, epoch: 'e', unit: Date.now(), complete_ms: Date.now(), kept_ms: 9e7 },
    };
    const documents = { '/jwks': { keys: [jwk] }, '/generations': page, '/introspect': { active: false } };
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify(documents[pathname] ?? { issuer, jwks_uri: `${issuer}/jwks` }));
  });
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: 'api', sub: 'c', client_id: 'c', jti: '1', scope: 'orders:read' };
  const input = `${encode({ alg: 'ES256', typ: 'at+jwt', kid: 'k' })}.${encode({ ...claims, generation: 1_700_000_000_000, iat: now - 5, exp: now + 600 })}`;
  const token = `${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;

  /** The first 200 of a new gate, over a middleware and over `verify()`. */
  async function first200(more = {}) {
    const { authenticate, requireScope } = require(join(folder, 'index'));
    const gate = authenticate({ issuer, audience: 'api', ...more });
    await gate.ready();
    const url = await listen((req, res) => {
      gate(req, res, () => requireScope('orders:read')(req, res, () => res.end('reached')));
    });
    const status = await get(url, token);
    const verified = await listen(async (req, res) => res.end((await gate.verify(req)).clientId));
    const ofVerify = await get(verified, token);
    await gate.close();
    return { status, ofVerify };
  }

  /** A gate with keys, and what makes it ask for them again. */
  async function fetchingGate() {
    const tasks = [];
    const schedule = (task, delayMs) => (tasks.push({ task, delayMs }), { cancel() {} });
    const { authenticate } = require(join(folder, 'index'));
    const gate = authenticate({ issuer, audience: 'api', schedule });
    await gate.ready();
    const next = async () => {
      const before = gate.status().issuers[0].keys.fetches;
      // The refresh of keys that may be 600 s old.
      tasks.find(({ delayMs }) => delayMs > 400_000 && delayMs < 600_000).task();
      const isDone = () => gate.status().issuers[0].keys.fetches > before && clients.length >= 2;
      while (!isDone()) await new Promise(setImmediate);
    };
    return { gate, next };
  }

  const DO = {
    load: () => (Object.values(require(join(folder, 'index'))), {}),
    gate: () => first200(),
    keys: () => first200({ keys: { keys: [jwk] } }),
    log: () => first200({ generationSource: `${issuer}/generations` }),
    async withHeaders() {
      const { httpGenerations } = require(join(folder, 'generation/index'));
      return first200({ generationSource: httpGenerations({ url: `${issuer}/generations`, headers: { 'X-A': 'b' } }) });
    },
    async opaque() {
      const opaque = { url: `${issuer}/introspect`, clientId: 'a', clientSecret: 'b' };
      const { authenticate } = require(join(folder, 'index'));
      const gate = authenticate({ issuer, audience: 'api', opaque });
      const reason = await gate
        .verify({ method: 'GET', url: '/', headers: { authorization: 'Bearer opaque' }, rawHeaders: [] })
        .catch((error) => error.reason);
      await gate.close();
      return { reason };
    },
    fetch: async () => ({ fetched: (await fetch(`${issuer}/other`)).status }),
    async dispatcher() {
      // The dispatcher of an app, which has loaded undici for it.
      await fetch('data:,');
      for (const name of DISPATCHERS.filter((one) => one in globalThis)) {
        const real = globalThis[name];
        const dispatch = (...given) => ((isDispatched = true), real.dispatch(...given));
        globalThis[name] = new Proxy(real, {
          get: (target, member) => (member === 'dispatch' ? dispatch : Reflect.get(target, member)),
        });
      }
      return {};
    },
    /** The app uses fetch between two requests for keys. */
    async twice() {
      const { gate, next } = await fetchingGate();
      const before = [...clients];
      clients.length = 0;
      await fetch('data:,');
      await next();
      await gate.close();
      return { before: [...new Set(before)] };
    },
    async dispatchLater() {
      const { gate, next } = await fetchingGate();
      clients.length = 0;
      await DO.dispatcher();
      await next();
      await gate.close();
      return {};
    },
    /** Opened and closed in one turn, as in a test that does not use it. */
    async closed() {
      const { authenticate } = require(join(folder, 'index'));
      await authenticate({ issuer, audience: 'api' }).close();
      for (let turns = 0; turns < 100; turns++) await new Promise(setImmediate);
      return {};
    },
  };

  for (const step of steps) {
    clients.length = 0;
    isDispatched = false;
    const result = await DO[step]();
    const own = Object.keys(require.cache).filter((file) => file.startsWith(join(folder, '/')));
    const loads = (name) => Object.keys(require.cache).some((file) => file.includes(`node_modules/${name}/`));
    const undici = process.moduleLoadList.some((name) => name.includes('undici/undici'));
    console.log(
      JSON.stringify({
        step,
        ...result,
        clients: [...new Set(clients)],
        isDispatched,
        undici,
        jwksRsa: loads('jwks-rsa'),
        own: own.map((file) => relative(folder, file)).sort(),
      }),
    );
  }
  process.exit();
}

void main();
