// How large the house is: lines and files per folder of src, exported names per entry, and the files and functions of
// src that one request runs through. `npm run size`, after a build.
import { readdirSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SRC = join(ROOT, 'src');
const DIST = join(ROOT, 'dist');
const load = createRequire(import.meta.url);

printFolders();
printExports();
await printRequests();

function printFolders() {
  const rows = new Map();
  for (const name of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const room = name.includes('/') ? name.split('/')[0] : '.';
    const row = rows.get(room) ?? { files: 0, lines: 0 };
    rows.set(room, { files: row.files + 1, lines: row.lines + countLines(join(SRC, name)) });
  }
  const all = [...rows.values()];
  rows.set('all', { files: sum(all, 'files'), lines: sum(all, 'lines') });
  console.table(Object.fromEntries(rows));
}

function printExports() {
  const { exports } = load(join(ROOT, 'package.json'));
  const rows = {};
  for (const [name, { types }] of Object.entries(exports)) {
    if (!types) continue;
    const report = `${(name.slice(2) || 'tillgate').replace('/', '-')}.api.md`;
    const text = readFileSync(join(ROOT, 'api', report), 'utf8');
    const count = (kind) => text.match(new RegExp(`^export (declare )?(${kind}) `, 'gm'))?.length ?? 0;
    rows[name] = { values: count('function|class|const'), types: count('interface|type') };
  }
  console.table(rows);
}

/** Counts what V8 saw called: the functions of dist but those of the test issuer, of one request each with a known and with a new token. */
async function printRequests() {
  const express = load('express');
  const { authenticate, requireScope } = load(join(DIST, 'index.js'));
  const { createTestIssuer } = load(join(DIST, 'testing/index.js'));
  const issuer = createTestIssuer();
  const gate = authenticate(issuer.options);
  const app = express();
  app.use(gate);
  app.get('/orders', requireScope('orders:read'), (req, res) => res.json({ clientId: req.auth?.clientId }));
  const server = app.listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const url = `http://127.0.0.1:${server.address().port}/orders`;

  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const measure = async (token) => {
    await session.post('Profiler.takePreciseCoverage');
    const { status } = await globalThis.fetch(url, {
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    });
    if (status !== 200) throw new Error(`expected 200, got ${status}`);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const ran = result
      .filter((script) => /\/dist\/(?!testing\/)/.test(script.url) && !script.url.includes('node_modules'))
      .map(({ functions }) => functions.filter(({ ranges: [range] }) => range.count > 0).length)
      .filter((count) => count > 0);
    return { files: ran.length, functions: ran.reduce((a, b) => a + b, 0) };
  };
  const token = (clientId) => issuer.token({ scope: 'orders:read', clientId });
  const known = token('till-1');
  for (let seen = 0; seen < 3; seen += 1) await measure(known);
  await measure(token('till-2'));
  console.table({ 'known token': await measure(known), 'new token': await measure(token('till-3')) });
  server.close();
  await gate.close();
}

function sum(rows, key) {
  return rows.reduce((total, row) => total + row[key], 0);
}

function countLines(path) {
  return readFileSync(path, 'utf8').split('\n').length - 1;
}
