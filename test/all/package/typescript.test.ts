import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from './consumer';
import { node } from './npm';
import { packTillgate } from './tarball';

/** The oldest compiler that README names. */
const PACKAGES = {
  dependencies: { express: '^5.0.0' },
  devDependencies: { typescript: '~5.0.4', '@types/express': '^5.0.0', '@types/node': '~20.19.0' },
};

const MAIN_ENTRY = `
import express from 'express';
import { authenticate, requireScope } from 'tillgate';

const app = express();
app.use('/v1', authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' }));
app.get('/v1/orders', requireScope('orders:read'), (req, res) => void res.json({ clientId: req.auth?.clientId }));
`;
const ALL_ENTRIES = `
import { authenticate } from 'tillgate';
import { authenticateOptions, readSettings } from 'tillgate/env';
import { memoryGenerations } from 'tillgate/generations';
import { observe } from 'tillgate/opentelemetry';
import { dpop, mtls } from 'tillgate/possession';
import { createClient } from '@tillgate/client';
import { redisGenerations, startPublisher } from '@tillgate/stores';
import { sourceFromUrl } from '@tillgate/stores/url';
import { contractCases, createTestIssuer } from '@tillgate/testing';

const { options } = createTestIssuer();
authenticate({ ...options, possession: [dpop({ baseUrl: 'https://api.example.com' }), mtls()] });
void [authenticateOptions, createClient, contractCases, memoryGenerations, observe, readSettings];
void [redisGenerations, sourceFromUrl, startPublisher];
`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-typescript-'));
  await writeFile(join(folder, 'package.json'), JSON.stringify(PACKAGES));
  await writeFile(join(folder, 'main-entry.ts'), MAIN_ENTRY);
  await writeFile(join(folder, 'all-entries.ts'), ALL_ENTRIES);
  expect(await install(folder, await packTillgate('gate', 'stores', 'client', 'testing'))).toMatchObject({
    exitCode: 0,
  });
}, 300_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

it.each([
  // To this compiler node16 is the same.
  ['nodenext', 'nodenext', 'es2022', 'all-entries.ts'],
  ['esnext', 'bundler', 'es2022', 'all-entries.ts'],
  // Knows no entries but the main one.
  ['commonjs', 'node', 'es2022', 'main-entry.ts'],
  // Its library has an Error without `cause`.
  ['nodenext', 'nodenext', 'es2017', 'all-entries.ts'],
  ['commonjs', 'node', 'es2017', 'main-entry.ts'],
])(
  'TypeScript 5.0 compiles the declarations with module %s, moduleResolution %s and target %s: %s',
  async (module, moduleResolution, target, file) => {
    const options = Object.entries({
      module,
      moduleResolution,
      target,
      skipLibCheck: 'false',
      skipDefaultLibCheck: 'true',
    });
    const flags = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--esModuleInterop'];
    const args = [...flags, ...options.flatMap(([name, value]) => [`--${name}`, value])];
    const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
    expect(await node(folder, compiler, ...args, 'main-entry.ts', file)).toMatchObject({ exitCode: 0, output: '' });
  },
);
