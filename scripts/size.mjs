// How large the house is: lines and files per room and folder of src, exported names per entry, the files and
// functions of the gate that one request runs through, and what a production install holds. `npm run size`, after a build.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { comingWith } from './lock-file.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SRC = join(ROOT, 'src');
const load = createRequire(import.meta.url);
const EXPRESS = 'node_modules/express';
const ROOMS = load(join(SRC, 'rooms.json')).map(({ folder }) => folder);

printFolders();
printExports();
await printRequests();
printInstalls();

function printFolders() {
  const rows = new Map();
  for (const name of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || /[\\/](dist|node_modules)[\\/]/.test(name)) continue;
    const [room, folder, file] = name.split('/');
    const lines = countLines(join(SRC, name));
    for (const place of [room, ...(file ? [`${room}/${folder}`] : [])]) {
      const row = rows.get(place) ?? { files: 0, lines: 0 };
      rows.set(place, { files: row.files + 1, lines: row.lines + lines });
    }
  }
  const all = ROOMS.map((room) => rows.get(room));
  rows.set('all', { files: sum(all, 'files'), lines: sum(all, 'lines') });
  console.table(Object.fromEntries([...rows].sort(([one], [other]) => (one < other ? -1 : 1))));
}

function printExports() {
  const rows = {};
  for (const report of readdirSync(join(ROOT, 'api')).filter((name) => name.endsWith('.api.md'))) {
    const text = readFileSync(join(ROOT, 'api', report), 'utf8');
    const count = (kind) => text.match(new RegExp(`^export (declare )?(${kind}) `, 'gm'))?.length ?? 0;
    rows[report.replace('.api.md', '')] = { values: count('function|class|const'), types: count('interface|type') };
  }
  for (const room of ROOMS) {
    const file = join(SRC, room, 'internal.ts');
    if (!existsSync(file)) continue;
    const text = readFileSync(file, 'utf8');
    rows[`${room}, internal`] = {
      values: text.match(/^export \{/gm)?.length ?? 0,
      types: text.match(/^export type \{/gm)?.length ?? 0,
    };
  }
  console.table(rows);
}

/** Counts what V8 saw called: the functions of the gate, of one request each with a known and with a new token. */
async function printRequests() {
  const express = load('express');
  const { authenticate, requireScope } = load('tillgate');
  const { createTestIssuer } = load('@tillgate/testing');
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
      .filter((script) => /\/gate\/dist\//.test(script.url))
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

/** Packages and MB of a production install, express included: by the lock file, in the sizes that they have here. */
function printInstalls() {
  const { files } = load(join(SRC, 'gate/package.json'));
  const own = sum(
    files.map((name) => ({ bytes: bytesOf([join(SRC, 'gate', name), join(ROOT, name)].find(existsSync)) })),
    'bytes',
  );
  const install = (folders, extra = 0) => {
    const found = new Set(folders.flatMap((folder) => [folder, ...comingWith(folder)]));
    const bytes = [...found].reduce((total, path) => total + bytesOf(join(ROOT, path), 'node_modules'), extra);
    return { packages: found.size + (extra > 0 ? 1 : 0), MB: Math.round(bytes / 1e5) / 10 };
  };
  console.table({
    'express alone': install([EXPRESS]),
    'express-oauth2-jwt-bearer': install([EXPRESS, 'node_modules/express-oauth2-jwt-bearer']),
    tillgate: install([EXPRESS, ...comingWith('src/gate')], own),
  });
}

/** On a disk with blocks of 4 KiB. */
function bytesOf(path, without) {
  const found = statSync(path);
  if (!found.isDirectory()) return Math.ceil(found.size / 4096) * 4096;
  const names = readdirSync(path).filter((name) => name !== without);
  return names.reduce((total, name) => total + bytesOf(join(path, name), without), 4096);
}
