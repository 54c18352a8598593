/** A resource server of the chaos run: a gate with one source. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGate } from '../../../src/gate/express/authenticate';
import type { AuthenticateOptions } from '../../../src/gate/index';
import { splitInternals } from '../../support/gate-internals';

const [options, internals] = splitInternals(JSON.parse(process.argv[2] ?? '') as object);
const gateOptions = {
  ...(options as AuthenticateOptions),
  unguarded: 'allow' as const,
  logger: { info() {}, warn() {}, error() {} },
};
const gate = createGate(gateOptions, internals);
const server = createServer((req, res) => gate(req, res, () => res.end()));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

void gate.ready().then(() => process.send?.({ isReady: true }));
setInterval(() => process.send?.({ bytes: process.memoryUsage.rss() }), 500);
// Must not outlive the run, whatever ends that.
process.on('disconnect', () => process.exit());
