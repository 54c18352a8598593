/** A resource server whose callers send floods, or the introspection endpoint that it asks: by the first argument. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import { memoryReplayStore } from '../../../src/gate/possession/replay-store';
import { BASE_URL } from '../../support/dpop';
import { AUDIENCE, goodClaims, ISSUER, NOW_MS } from '../../support/issuer';
import { jwks } from '../../support/keys';
import type { TestKey } from '../../support/keys';

const clock = (): number => NOW_MS;
/** A common distance to an authorization server. */
const LATENCY_MS = 30;

/** Tokens say what they are: `active_<client>_<number>`. */
const endpoint = createServer((req, res) => {
  let form = '';
  req.on('data', (chunk: Buffer) => (form += chunk.toString()));
  req.on('end', () => {
    const [kind, client_id] = (new URLSearchParams(form).get('token') ?? '').split('_');
    const body = kind === 'active' ? { active: true, ...goodClaims(), client_id } : { active: false };
    setTimeout(() => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body)), LATENCY_MS);
  });
});

function api(url: string, key: TestKey) {
  const app = express();
  app.set('trust proxy', true);
  const replayStore = memoryReplayStore(clock, 1_000);
  const gate = authenticate({
    ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(key), clock, allowHttp: true },
    opaque: { url, clientId: 'api', clientSecret: 'secret', cacheMs: 0 },
    possession: [dpop({ baseUrl: BASE_URL, replayStore })],
    logger: { info() {}, warn() {}, error() {} },
  });
  app.get('/v1/orders', gate, requireScope('orders:read'), (_req, res) => void res.json([]));
  return createServer(app);
}

const [, , role = '', url = '', key = '{}'] = process.argv;
const server = role === 'api' ? api(url, JSON.parse(key) as TestKey) : endpoint;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit());
