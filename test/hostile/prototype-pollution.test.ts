import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import type { Express } from 'express';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { authenticate, problemHandler, requireAuthenticated, requireClaim, requireScope } from '../../src';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

/**
 * Names that node itself, Express or Jest read from plain objects and cannot stand when inherited: property
 * descriptors, thenables, stream and socket options. They break every program, with or without a gate.
 */
const NOT_SURVIVED = new Set(
  `get set value writable enumerable configurable then constructor toString valueOf toJSON length name message stack
  cause code path host port signal fd encoding callback method headers url params query body statusCode socket timeout
  next done return throw prototype call apply bind push data end write emit on once off key type keys values entries
  size has map filter find join split test exec status send json`.split(/\s+/),
);

/** Every member name that the sources of a layer mention. */
function namesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const files = entries.filter((one) => one.isFile() && one.name.endsWith('.ts'));
  const text = files.map((file) => readFileSync(join(file.parentPath, file.name), 'utf8')).join('\n');
  return [...text.matchAll(/(?:\.|'|\breadonly )([a-zA-Z_]\w+)(?=['?:,.;)\s])/g)].map(([, name]) => name as string);
}

const SOURCES = join(__dirname, '../../src');
const NAMES = [
  ...new Set(['core', 'token', 'generation', 'express'].flatMap((layer) => namesIn(join(SOURCES, layer)))),
].filter((name) => !NOT_SURVIVED.has(name) && !(name in Object.prototype) && !/^(?:on|_)/.test(name));

/** What a polluted member can be. */
const VALUES: readonly [string, unknown][] = [
  ['true', true],
  ['false', false],
  ['a text', 'orders:read'],
  ['an empty array', []],
  ['an object', { allOf: [], anyOf: [] }],
  ['a time far away', 9e15],
];

function pollute(names: readonly string[], value: unknown): () => void {
  for (const name of names) {
    Object.defineProperty(Object.prototype, name, { value, writable: true, configurable: true, enumerable: true });
  }
  return () => names.forEach((name) => Reflect.deleteProperty(Object.prototype, name));
}

function appOf(optional: boolean): Express {
  const gate = authenticate({
    ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS, logger: recordingLogger() },
    ...{ optional, unguarded: 'refuse' },
  });
  const app = express().use(gate);
  app.get('/scope', requireScope('orders:read'), reach);
  app.get('/any', requireScope({ anyOf: ['orders:read', 'x'] }), reach);
  app.get(
    '/claim',
    requireClaim('store', (store) => store !== undefined),
    reach,
  );
  app.get('/token', requireAuthenticated(), reach);
  app.get('/unguarded', reach);
  return app.use(problemHandler({ logger: recordingLogger() }));
}

function reach(_req: IncomingMessage, res: ServerResponse): void {
  res.statusCode = 200;
  res.end('reached');
}

/** Status and the error of the challenge, over a socket: a client of its own would read polluted options. */
function call(server: Server, path: string, raw: string | undefined): Promise<string> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', reject);
    socket.on('close', () => resolve(`${text.slice(9, 12)} ${/error="(\w+)"/.exec(text)?.[1] ?? ''}`.trim()));
    const authorization = raw === undefined ? '' : `Authorization: Bearer ${raw}\r\n`;
    socket.write(`GET ${path} HTTP/1.1\r\nHost: api.test\r\n${authorization}Connection: close\r\n\r\n`);
  });
}

const TOKENS: readonly (string | undefined)[] = [
  undefined,
  token(),
  token({ claims: { scope: '' } }),
  token({ claims: { exp: 1 } }),
  token({ claims: { generation: undefined } }),
  token({ claims: { client_id: undefined } }),
  token({ claims: { aud: undefined } }),
  token({ header: { typ: undefined } }),
  token({ header: { alg: 'none' } }),
  token({ key: newKey('ES256', testKey().kid) }),
];
const PATHS = ['/scope', '/any', '/claim', '/token', '/unguarded'];

async function outcomes(servers: readonly Server[]): Promise<string[]> {
  const all: string[] = [];
  for (const server of servers) {
    for (const path of PATHS) for (const raw of TOKENS) all.push(`${path} ${await call(server, path, raw)}`);
  }
  return all;
}

describe('with every name that the gate reads on Object.prototype', () => {
  let servers: readonly Server[];
  beforeAll(async () => {
    servers = [false, true].map((optional) => createServer(appOf(optional)).listen(0, '127.0.0.1'));
    await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))));
  });
  afterAll(() => servers.forEach((server) => void server.close()));

  it('looks for many names', () => {
    expect(NAMES.length).toBeGreaterThan(300);
    for (const name of ['anyOf', 'allOf', 'typ', 'crit', 'optional', 'allowed', 'auth', 'scope', 'exp', 'generation']) {
      expect(NAMES).toContain(name);
    }
  });

  it.each(VALUES)('decides every request as before: %s', async (_what, value) => {
    const expected = await outcomes(servers);
    expect(expected.filter((one) => one.endsWith(' 200')).length).toBeGreaterThan(5);
    const restore = pollute(NAMES, value);
    let got: string[];
    try {
      got = await outcomes(servers);
    } finally {
      restore();
    }
    expect(got).toEqual(expected);
  });
});
