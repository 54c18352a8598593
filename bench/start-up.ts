/**
 * What a start costs, as Markdown tables: loading the package in a fresh process, the time from spawning a server to its
 * first 200, and the time until the scaffold is ready. `npm run bench:start-up -- --rounds 20`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startContender } from './gate/contender';
import { startIssuer } from './gate/tokens';
import type { Issuer } from './gate/tokens';
import { median, round, table } from './stats';

const ROOT = join(__dirname, '..');
const DIST = join(ROOT, 'dist');

/** Runs each piece of work by turns, and returns the median of what each returns. */
async function medians(
  rounds: number,
  work: Readonly<Record<string, () => number | Promise<number>>>,
): Promise<Readonly<Record<string, number>>> {
  const results = Object.keys(work).map((name) => [name, [] as number[]] as const);
  for (let done = 0; done < rounds; done++) {
    for (const [name, all] of results) all.push((await work[name]?.()) ?? NaN);
  }
  return Object.fromEntries(results.map(([name, all]) => [name, median(all)]));
}

/** CPU time that a fresh process needs to load modules, in ms. */
function loadingMs(...modules: readonly string[]): number {
  const code = `
    const before = process.cpuUsage();
    for (const module of ${JSON.stringify(modules)}) require(module);
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / 1000);`;
  return Number(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }));
}

async function loading(rounds: number): Promise<string> {
  const [express, tillgate, testing] = [
    require.resolve('express'),
    join(DIST, 'index.js'),
    join(DIST, 'testing/index.js'),
  ];
  const ms = await medians(rounds, {
    express: () => loadingMs(express),
    'tillgate alone': () => loadingMs(tillgate),
    'express, then tillgate': () => loadingMs(express, tillgate),
    'tillgate/testing alone': () => loadingMs(testing),
  });
  const rows = Object.entries(ms).map(([name, cpuMs]) => [name, round(cpuMs)]);
  return table(['loaded in a fresh process', 'CPU ms'], rows);
}

/** From spawning a server of `bench/gate` to its first 200, in ms. The key set is fetched in between. */
async function firstResponseMs(name: string, issuer: Issuer): Promise<number> {
  const [token] = await issuer.tokens(1);
  const startedMs = performance.now();
  const server = await startContender(name, issuer);
  const { status } = await fetch(server.url, { headers: { authorization: `Bearer ${token}` } });
  const tookMs = performance.now() - startedMs;
  await server.stop();
  if (status !== 200) throw new Error(`${name} responded with ${status}`);
  return tookMs;
}

async function firstResponses(rounds: number): Promise<string> {
  const issuer = await startIssuer('RS256');
  try {
    const ms = await medians(rounds, {
      'bare Express': () => firstResponseMs('bare', issuer),
      'Express with the gate': () => firstResponseMs('tillgate', issuer),
    });
    return table(
      ['spawned', 'first 200 after ms'],
      Object.entries(ms).map(([name, tookMs]) => [name, round(tookMs)]),
    );
  } finally {
    issuer.close();
  }
}

/** From spawning `tillgate dev` to the report that it prints when it is ready, in ms. */
async function readyMs(dataDir: string): Promise<number> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, [join(DIST, 'cli/main.js'), 'dev', '--json'], {
    env: {
      ...process.env,
      ...{ TILLGATE_DATA_DIR: dataDir, TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'warn' },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error('tillgate dev ended')))]);
  const tookMs = performance.now() - startedMs;
  child.kill();
  await ended;
  return tookMs;
}

async function scaffold(rounds: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  try {
    const ms = await medians(rounds, {
      'tillgate dev, for the first time': () => readyMs(mkdtempSync(join(folder, 'new-'))),
      'tillgate dev': () => readyMs(join(folder, 'known')),
    });
    return table(
      ['start', 'ready after ms'],
      Object.entries(ms).map(([name, tookMs]) => [name, Math.round(tookMs)]),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '20' } } });
  for (const measure of [loading, firstResponses, scaffold]) console.log(`\n${await measure(Number(values.rounds))}`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
