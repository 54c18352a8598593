import { execFileSync } from 'node:child_process';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { node } from './npm';
import { packTillgate } from './tarball';

const ROOT = join(__dirname, '../../..');
const PACKAGES = { tillgate: 'gate', '@tillgate/testing': 'testing' } as const;

/** Prints what each entry has, by `import` and by `require`, and the scripts of the package that are loaded then. */
const ENTRIES = `
  import { createRequire } from 'node:module';
  const require = createRequire(import.meta.url);
  const { exports } = require('tillgate/package.json');
  const entries = Object.keys(exports).filter((name) => name !== './package.json');
  const different = [];
  for (const entry of entries) {
    const imported = await import('tillgate' + entry.slice(1));
    const required = require('tillgate' + entry.slice(1));
    const names = [...new Set([...Object.keys(imported), ...Object.keys(required)])];
    for (const name of names.filter((one) => one !== 'default' && one !== 'module.exports'))
      if (imported[name] === undefined || imported[name] !== required[name]) different.push(entry + ' ' + name);
  }
  const scripts = Object.keys(require.cache).filter((file) => /tillgate[\\\\/]dist/.test(file));
  console.log(JSON.stringify({ entries: entries.length, different, scripts: scripts.length }));`;

/** Prints what happens to requests where gate, guard, kinds of proof and errors are of different entries, half of them imported. */
const SHARED = `
  import { createRequire } from 'node:module';
  import { once } from 'node:events';
  import { createServer } from 'node:http';
  import { authenticate, AuthError } from 'tillgate';
  import { dpop } from 'tillgate/possession';
  const require = createRequire(import.meta.url);
  const { ConfigurationError, requireScope } = require('tillgate');
  const { readSettings } = require('tillgate/env');
  const { requirementOf } = require('tillgate/internal');
  const { createTestIssuer } = require('@tillgate/testing');

  const issuer = createTestIssuer();
  const gate = authenticate({ ...issuer.options, possession: [dpop({ baseUrl: 'https://api.test' })], exposeReasons: true });
  const guard = requireScope('orders:read');
  let reached = 0;
  const server = createServer((req, res) => gate(req, res, () => guard(req, res, () => (reached++, res.end()))));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  async function get(headers) {
    const response = await fetch('http://127.0.0.1:' + server.address().port, { headers });
    const text = await response.text();
    return [response.status, text === '' ? '' : JSON.parse(text).code, reached];
  }
  const scope = 'orders:read';
  const bound = issuer.token({ scope, claims: { cnf: { jkt: 'A'.repeat(43) } } });
  const results = {
    accepted: await get({ authorization: 'Bearer ' + issuer.token({ scope }) }),
    withoutScope: await get({ authorization: 'Bearer ' + issuer.token() }),
    badProof: await get({ authorization: 'DPoP ' + bound, dpop: 'not.a.proof' }),
    requirement: requirementOf(guard) !== undefined,
    superseded: (issuer.bump(), await get({ authorization: 'Bearer ' + issuer.token({ scope, generation: 1 }) })),
    verify: await gate.verify({ method: 'GET', url: '/', headers: {}, rawHeaders: [] }).catch((error) => error instanceof AuthError),
  };
  try {
    readSettings({ TILLGATE_PORT: 'none' });
  } catch (error) {
    results.settings = error instanceof ConfigurationError;
  }
  console.log(JSON.stringify(results));
  process.exit();`;

let folder: string;

async function run(script: string): Promise<unknown> {
  const file = join(folder, 'script.mjs');
  await writeFile(file, script);
  const { exitCode, output, errors } = await node(folder, file);
  if (exitCode !== 0) throw new Error(errors);
  return JSON.parse(output);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tillgate-one-file-'));
  const modules = join(folder, 'node_modules');
  const tarballs = await packTillgate(...Object.values(PACKAGES));
  for (const [at, name] of Object.keys(PACKAGES).entries()) {
    await mkdir(join(modules, name), { recursive: true });
    execFileSync('tar', ['-xzf', tarballs[at] ?? '', '-C', join(modules, name), '--strip-components=1']);
  }
  const { dependencies } = JSON.parse(readFileSync(join(modules, 'tillgate/package.json'), 'utf8')) as {
    dependencies: object;
  };
  for (const name of Object.keys(dependencies)) await symlink(join(ROOT, 'node_modules', name), join(modules, name));
}, 600_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package tillgate, whose scripts are one file', () => {
  it('has one script and a stub for each entry, whose names import and require find', async () => {
    const dist = join(folder, 'node_modules/tillgate/dist');
    const scripts = (await readdir(dist, { recursive: true })).filter((name) => name.endsWith('.js'));
    expect(scripts).toHaveLength(7);
    expect(await run(ENTRIES)).toEqual({ entries: 6, different: [], scripts: 7 });
  });

  it('has one copy of its state: gates, guards, proofs, settings and errors of all entries work with each other', async () => {
    expect(await run(SHARED)).toEqual({
      accepted: [200, '', 1],
      withoutScope: [403, 'insufficient_scope', 1],
      badProof: [401, 'invalid_dpop_proof', 1],
      requirement: true,
      superseded: [401, 'superseded', 1],
      verify: true,
      settings: true,
    });
  });

  it('has its dependencies outside of it', () => {
    const text = readFileSync(join(folder, 'node_modules/tillgate/dist/scripts/all.js'), 'utf8');
    const required = [...text.matchAll(/require\("((?!node:)[^"./][^"]*)"\)/g)].map(([, name]) => name);
    expect([...new Set(required)].sort()).toEqual([
      'fastest-levenshtein',
      'jwks-rsa',
      'lru-cache',
      'passport',
      'passport-http-bearer',
    ]);
  });
});
