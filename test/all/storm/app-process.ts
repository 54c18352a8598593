/** A resource server with upgrades, streams, DPoP and introspection. Arguments: the introspection endpoint, the key of the issuer. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { authenticate, endWithToken, refuseUpgrade, requireScope } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import { BASE_URL } from '../../support/dpop';
import { AUDIENCE, ISSUER, NOW_MS } from '../../support/issuer';
import { jwks } from '../../support/keys';
import type { TestKey } from '../../support/keys';

const [, , url = '', key = '{}'] = process.argv;
const gate = authenticate({
  ...{
    issuer: ISSUER,
    audience: AUDIENCE,
    keys: jwks(JSON.parse(key) as TestKey),
    clock: () => NOW_MS,
    allowHttp: true,
  },
  opaque: { url, clientId: 'api', clientSecret: 'secret', cacheMs: 0 },
  possession: [dpop({ baseUrl: BASE_URL })],
  logger: { info() {}, warn() {}, error() {} },
});

const app = express().use(gate);
app.get('/v1/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
app.post('/v1/orders', requireScope('orders:read'), express.json(), (_req, res) => void res.json([]));
app.get('/v1/events', requireScope('orders:read'), endWithToken(), (_req, res) => {
  res.type('text/event-stream').write(': hello\n\n');
});
app.get('/v1/download', requireScope('orders:read'), endWithToken(), (_req, res) => void res.send('x'.repeat(2 ** 20)));

const server = createServer(app).on('upgrade', (req, socket) => {
  gate.verify(req).then(
    (auth) => {
      socket.on('error', () => socket.destroy());
      if (auth)
        socket.once(
          'close',
          gate.hold(auth, () => socket.end()),
        );
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.pipe(socket);
    },
    (error: unknown) => refuseUpgrade(socket, error),
  );
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit());
