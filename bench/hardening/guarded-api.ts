/**
 * An API with a gate in front, in a process of its own: argv[2] is the URL of its issuer, argv[3] the audience. Says on which
 * port it listens, and when it is asked, what it costs.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { authenticate, problemHandler, requireScope } from '../../src/index';
import type { ApiFigures, FromApi } from './api-process';

const [issuer = '', audience = ''] = process.argv.slice(2);
const gate = authenticate({ issuer, audience, generationClaim: false, logger: { info() {}, warn() {}, error() {} } });
const app = express();
app.use('/v1', gate);
app.get('/v1/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
app.use(problemHandler());

const server = createServer(app).listen(0, '127.0.0.1', () => {
  tell({ kind: 'listening', port: (server.address() as AddressInfo).port });
});
process.on('message', () => tell({ kind: 'figures', figures: figures() }));

function figures(): ApiFigures {
  global.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return { heapUsed, rss, cpuMs: (user + system) / 1000 };
}

function tell(message: FromApi): void {
  process.send?.(message);
}
