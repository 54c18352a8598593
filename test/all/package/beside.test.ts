import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from './consumer';
import { node } from './npm';
import type { Ended } from './npm';
import { packTillgate } from './tarball';

/** What is installed together. */
const tarballs = (): Promise<readonly string[]> => packTillgate('gate', 'testing');

/** Packages of an app that is older than this package. */
const SETS: readonly (readonly string[])[] = [
  ['express@~4.17.0', 'helmet@4', 'pino@8', 'js-yaml@3', 'express-rate-limit@5', 'swagger-ui-dist@4'],
  ['express@~4.18.1', 'helmet@5', 'pino@9', 'js-yaml@4', 'express-rate-limit@7', 'ajv@6'],
  ['express@~4.21.0', 'helmet@7', 'jsonwebtoken@8', 'redis@4', 'ioredis@5', 'prom-client@14'],
  [
    ...['express@5', 'helmet@4', 'pino@8', 'js-yaml@3', 'jsonwebtoken@8', 'express-rate-limit@5'],
    ...['redis@4', 'ioredis@5', 'ajv@6', 'prom-client@14', 'swagger-ui-dist@4'],
  ],
];

const APP = `
const express = require('express');
const { once } = require('node:events');
const { authenticate, requireScope } = require('tillgate');
const { createTestIssuer } = require('@tillgate/testing');

async function main() {
  const issuer = createTestIssuer();
  const app = express();
  app.get('/v1/orders', authenticate(issuer.options), requireScope('orders:read'), (req, res) => res.json([]));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = 'http://127.0.0.1:' + server.address().port + '/v1/orders';
  const token = await issuer.token({ scope: 'orders:read' });
  const statuses = [];
  for (const headers of [{}, { authorization: 'Bearer ' + token }]) statuses.push((await fetch(url, { headers })).status);
  console.log(statuses.join(' '));
  process.exit();
}
main();
`;

let folder: string;
const ran = new Map<readonly string[], { readonly installed: Ended; readonly started: Ended }>();

async function run(set: readonly string[], packed: readonly string[]): Promise<void> {
  const project = join(folder, String(SETS.indexOf(set)));
  await mkdir(project);
  const dependencies = Object.fromEntries(set.map((one) => one.split('@')));
  await writeFile(join(project, 'package.json'), JSON.stringify({ private: true, dependencies }));
  await writeFile(join(project, 'app.cjs'), APP);
  // No flag about peers: an app's own settings decide, and those of npm are strict.
  const installed = await install(project, packed);
  ran.set(set, { installed, started: await node(project, 'app.cjs') });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-beside-'));
  const packed = await tarballs();
  const inTurn = async (sets: readonly (readonly string[])[]): Promise<void> => {
    for (const set of sets) await run(set, packed);
  };
  await Promise.all([inTurn(SETS.slice(0, 2)), inTurn(SETS.slice(2))]);
}, 600_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

it.each(SETS.map((set) => [set.join(' '), set] as const))(
  'the package installs and guards beside %s',
  (_names, set) => {
    const { installed, started } = ran.get(set)!;
    expect(installed).toMatchObject({ exitCode: 0 });
    expect(started).toMatchObject({ exitCode: 0, output: '401 200\n' });
  },
);
