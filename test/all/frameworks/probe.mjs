// Runs a server of docs/recipes.md on a free port, and prints what it responds with to three callers, and to the last one
// again after a storm of connections that are reset.
import { once } from 'node:events';
import { connect } from 'node:http2';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { issuer } from './gate.mjs';
import { rawRequest, storm, WEBSOCKET } from './storm.cjs';

const [, , file, protocol, seed] = process.argv;
const TOKENS = [
  undefined,
  issuer.token({ scope: 'items:read' }),
  issuer.token({ clientId: 'till-1', scope: 'orders:read' }),
];

const WAYS = {
  async http(authorization) {
    return respondedBy(await fetch(`${base}/orders`, { headers: { ...authorization } }));
  },
  async graphql(authorization) {
    const headers = { 'content-type': 'application/json', ...authorization };
    return respondedBy(await fetch(base, { method: 'POST', headers, body: '{"query":"{ caller }"}' }));
  },
  async http2(authorization) {
    const session = connect(base);
    const stream = session.request({ ':path': '/orders', ...authorization });
    const [headers] = await once(stream, 'response');
    const body = (await stream.setEncoding('utf8').toArray()).join('');
    session.close();
    return { status: headers[':status'], challenge: headers['www-authenticate'], body };
  },
  async 'socket.io'(extraHeaders) {
    const { io } = await import('socket.io-client');
    const client = io(base, { extraHeaders, reconnection: false });
    const body = await new Promise((resolve) =>
      client.once('hello', resolve).once('connect_error', ({ message }) => resolve(message)),
    );
    if (!body.caller) return { body: JSON.stringify(body) };
    const ended = new Promise((resolve) => client.once('disconnect', resolve));
    issuer.bump(body.caller);
    return { body: JSON.stringify(body), ended: await ended };
  },
  async 'graphql-ws'(headers) {
    const { WebSocket } = await import('ws');
    const client = new WebSocket(base.replace('http', 'ws'), 'graphql-transport-ws', { headers });
    const refusal = once(client, 'unexpected-response').then(async ([, response]) => ({
      ...{ status: response.statusCode, challenge: response.headers['www-authenticate'] },
      body: (await response.setEncoding('utf8').toArray()).join(''),
    }));
    const failed = new Promise((_, reject) => client.once('error', reject));
    const messages = (async () => {
      await once(client, 'open');
      const ended = once(client, 'close');
      client.send('{"type":"connection_init"}');
      await once(client, 'message');
      client.send('{"id":"1","type":"subscribe","payload":{"query":"subscription { caller }"}}');
      const [next] = await once(client, 'message');
      issuer.bump(JSON.parse(next).payload.data.caller);
      return { body: String(next), ended: (await ended)[0] };
    })();
    return Promise.race([refusal, messages, failed]);
  },
};

async function respondedBy(response) {
  return { status: response.status, challenge: response.headers.get('www-authenticate'), body: await response.text() };
}

async function freePort() {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

process.env.PORT = await freePort();
const base = `http://localhost:${process.env.PORT}`;
await import(`./${file}`);
const ask = WAYS[protocol];
const results = [];
for (const token of TOKENS) {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  for (let tries = 0; ; tries++) {
    try {
      results.push(await ask(authorization));
      break;
    } catch (error) {
      if (tries === 50) throw error; // the server is not listening yet
      await wait(100);
    }
  }
}

const caller = { clientId: 'till-2', scope: 'orders:read' };
const requests = TOKENS.flatMap((token) => {
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  return [
    rawRequest('GET', '/orders', authorization),
    rawRequest('POST', '/', { ...authorization, 'Content-Type': 'application/json' }, '{"query":"{ caller }"}'),
    rawRequest('GET', '/socket.io/?EIO=4&transport=polling', authorization),
    rawRequest('GET', '/socket.io/?EIO=4&transport=websocket', { ...authorization, ...WEBSOCKET }),
    rawRequest('GET', '/', { ...authorization, ...WEBSOCKET, 'Sec-WebSocket-Protocol': 'graphql-transport-ws' }),
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  ];
});
await storm({ port: Number(process.env.PORT), connections: 60, requests, seed: Number(seed) });
results.push(await ask({ authorization: `Bearer ${issuer.token(caller)}` }));
console.log(JSON.stringify(results));
process.exit(0);
