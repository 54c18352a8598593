/**
 * What a start costs, as Markdown tables: loading the package in a fresh process, CPU and memory of a server up to its first
 * 200, next to gates by hand, and the time until the token server is ready. `npm run bench:start-up -- --rounds 20`;
 * `--beside <clone>` adds the gate of another commit, built in a clone of its own.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startContender } from './gate/contender';
import { startIssuer } from './gate/tokens';
import type { Issuer } from './gate/tokens';
import { median, round, table } from './stats';

const ROOT = join(__dirname, '..');
const SRC = join(ROOT, 'src');

/** Runs each piece of work by turns, and returns the medians of the figures that each returns. */
async function medians(
  rounds: number,
  work: Readonly<Record<string, () => readonly number[] | Promise<readonly number[]>>>,
): Promise<readonly (readonly [string, ...number[]])[]> {
  const results = Object.entries(work).map(([name, measure]) => ({ name, measure, all: [] as (readonly number[])[] }));
  for (let done = 0; done < rounds; done++) {
    for (const { measure, all } of results) all.push(await measure());
  }
  return results.map(({ name, all }) => [
    name,
    ...(all[0] ?? []).map((_, at) => median(all.map((one) => one[at] ?? NaN))),
  ]);
}

/** CPU time that a fresh process needs for some code, in ms. */
function cpuMs(code: string): readonly number[] {
  const measured = `
    const before = process.cpuUsage();
    ${code}
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / 1000);`;
  return [Number(execFileSync(process.execPath, ['-e', measured], { encoding: 'utf8' }))];
}

async function loading(rounds: number, beside: string | undefined): Promise<string> {
  const load = (file: string): string => `require(${JSON.stringify(file)})`;
  const express = load(require.resolve('express'));
  const rowsOf = (src: string, of = ''): Record<string, () => readonly number[]> => {
    const gate = load(join(src, 'gate/dist/index.js'));
    const names = `const { authenticate, requireScope } = ${gate}`;
    const kit = load(join(src, 'testing/dist/index.js'));
    return {
      [`tillgate${of}`]: () => cpuMs(gate),
      [`tillgate, two names read${of}`]: () => cpuMs(names),
      [`express, then tillgate, two names read${of}`]: () => cpuMs(`${express}; ${names}`),
      [`@tillgate/testing and its first token${of}`]: () => cpuMs(`${kit}.createTestIssuer().token()`),
      // As Node does for an `import`.
      [`@tillgate/testing, all names read, and its first token${of}`]: () =>
        cpuMs(`({ ...${kit} }).createTestIssuer().token()`),
    };
  };
  const rows = await medians(rounds, {
    express: () => cpuMs(express),
    ...rowsOf(SRC),
    ...(beside !== undefined && rowsOf(join(beside, 'src'), ', the other commit')),
  });
  return table(['loaded in a fresh process', 'CPU ms'], rows.map(rounded));
}

function rounded([name, ...figures]: readonly [string, ...number[]]): (string | number)[] {
  return [name, ...figures.map(round)];
}

const MIB = 2 ** 20;

/**
 * A server of `bench/gate` to its first 200: ms of CPU from loading the gate, MiB of memory and of heap then, ms since it was
 * spawned. Express is loaded before; the key set, where it is not given, is fetched in between.
 */
async function firstResponse(name: string, issuer: Issuer, gate?: string): Promise<readonly number[]> {
  const [token] = await issuer.tokens(1);
  const startedMs = performance.now();
  const server = await startContender(name, issuer, { gate });
  const { status } = await fetch(server.url, { headers: { authorization: `Bearer ${token}` } });
  const tookMs = performance.now() - startedMs;
  const { cpuUs, rss, heapUsed } = await server.usage();
  await server.stop();
  if (status !== 200) throw new Error(`${name} responded with ${status}`);
  return [cpuUs / 1000, rss / MIB, heapUsed / MIB, tookMs];
}

const BY_HAND = 'by hand: passport, jsonwebtoken, jwks-rsa';
const EOJB = 'express-oauth2-jwt-bearer';

/** CPU and memory above those of bare Express, and the ratios of CPU, all of one run. */
async function firstResponses(rounds: number, beside: string | undefined): Promise<string> {
  const issuer = await startIssuer('RS256');
  const gatesOf = (gate?: string, of = ''): Record<string, () => Promise<readonly number[]>> => ({
    [`Tillgate, keys fetched${of}`]: () => firstResponse('tillgate-fetched', issuer, gate),
    [`Tillgate, keys given${of}`]: () => firstResponse('tillgate-keys', issuer, gate),
  });
  try {
    const servers = await medians(rounds, {
      'bare Express': () => firstResponse('bare', issuer),
      [BY_HAND]: () => firstResponse('passport-by-hand', issuer),
      [EOJB]: () => firstResponse('express-oauth2-jwt-bearer', issuer),
      ...gatesOf(),
      ...(beside !== undefined && gatesOf(join(beside, 'src/gate/dist'), ', the other commit')),
    });
    const [bare, ...others] = servers.map(([name, ...figures]) => ({ name, figures }));
    const above = others.map(({ name, figures }) => ({
      name,
      above: figures.map((one, at) => one - bare!.figures[at]!),
    }));
    const cpuOf = (wanted: string): number => above.find(({ name }) => name === wanted)?.above[0] ?? NaN;
    const rows = above.map(({ name, above: [cpu = NaN, memory = NaN, heap = NaN, ms = NaN] }) => {
      const ratios = [BY_HAND, EOJB].map((other) => (cpu / cpuOf(other)).toFixed(2));
      return [name, Math.round(cpu), ...ratios, round(memory), round(heap), Math.round(ms)];
    });
    const head = ['to the first 200, above bare Express', 'CPU ms', 'x by hand', 'x EOJB', 'RSS MiB', 'heap MiB', 'ms'];
    return table(head, rows);
  } finally {
    issuer.close();
  }
}

/** From spawning a command to the report that it prints when it is ready, in ms. */
async function untilReport(
  argv: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<readonly number[]> {
  const startedMs = performance.now();
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'error' };
  const child = spawn(process.execPath, argv, {
    cwd: ROOT,
    env: { ...process.env, ...ports, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const failed = ended.then(() => Promise.reject(new Error(`${argv.join(' ')} ended`)));
  await Promise.race([once(child.stdout, 'data'), failed]);
  const tookMs = performance.now() - startedMs;
  failed.catch(() => undefined);
  child.kill();
  await ended;
  return [tookMs];
}

async function tokenServer(rounds: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const dev = (argv: readonly string[], dataDir: string): Promise<readonly number[]> =>
    untilReport([...argv, 'dev', '--token-server', '--json'], { TILLGATE_DATA_DIR: dataDir });
  const clone = ['--conditions=source', '-r', './scripts/run-sources.cjs', 'src/cli/main.ts'];
  const built = [join(SRC, 'cli/dist/main.js')];
  try {
    const starts = await medians(rounds, {
      'tillgate dev --token-server in a clone, for the first time': () => dev(clone, mkdtempSync(join(folder, 'new-'))),
      'tillgate dev --token-server, for the first time': () => dev(built, mkdtempSync(join(folder, 'new-'))),
      'tillgate dev --token-server': () => dev(built, join(folder, 'known')),
    });
    return table(
      ['start', 'ready after ms'],
      starts.map(([name, ms = NaN]) => [name, Math.round(ms)]),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '15' }, beside: { type: 'string' } } });
  const beside = values.beside === undefined ? undefined : resolve(values.beside);
  for (const measure of [loading, firstResponses, tokenServer]) {
    console.log(`\n${await measure(Number(values.rounds), beside)}`);
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
