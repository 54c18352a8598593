/**
 * What a start costs, as Markdown tables: loading the package in a fresh process, time and memory from spawning a server to
 * its first 200, and the time until the scaffold is ready. `npm run bench:start-up -- --rounds 20`.
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

/** CPU time that a fresh process needs to load modules, in ms. */
function loadingMs(...modules: readonly string[]): readonly number[] {
  const code = `
    const before = process.cpuUsage();
    for (const module of ${JSON.stringify(modules)}) require(module);
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / 1000);`;
  return [Number(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }))];
}

async function loading(rounds: number): Promise<string> {
  const [express, tillgate, testing] = [
    require.resolve('express'),
    join(SRC, 'gate/dist/index.js'),
    join(SRC, 'testing/dist/index.js'),
  ];
  const rows = await medians(rounds, {
    express: () => loadingMs(express),
    'tillgate alone': () => loadingMs(tillgate),
    'express, then tillgate': () => loadingMs(express, tillgate),
    '@tillgate/testing alone': () => loadingMs(testing),
  });
  return table(['loaded in a fresh process', 'CPU ms'], rows.map(rounded));
}

function rounded([name, ...figures]: readonly [string, ...number[]]): (string | number)[] {
  return [name, ...figures.map(round)];
}

const MIB = 2 ** 20;

/** A server of `bench/gate`, spawned: ms to its first 200, MiB of memory and of heap then. The key set is fetched in between. */
async function firstResponse(name: string, issuer: Issuer): Promise<readonly number[]> {
  const [token] = await issuer.tokens(1);
  const startedMs = performance.now();
  const server = await startContender(name, issuer);
  const { status } = await fetch(server.url, { headers: { authorization: `Bearer ${token}` } });
  const tookMs = performance.now() - startedMs;
  const { rss, heapUsed } = await server.usage();
  await server.stop();
  if (status !== 200) throw new Error(`${name} responded with ${status}`);
  return [tookMs, rss / MIB, heapUsed / MIB];
}

async function firstResponses(rounds: number): Promise<string> {
  const issuer = await startIssuer('RS256');
  try {
    const servers = await medians(rounds, {
      'bare Express': () => firstResponse('bare', issuer),
      'Express with the gate': () => firstResponse('tillgate', issuer),
      'the same, with the option keys': () => firstResponse('tillgate-keys', issuer),
    });
    return table(['spawned', 'first 200 after ms', 'memory MiB', 'heap MiB'], servers.map(rounded));
  } finally {
    issuer.close();
  }
}

/** From spawning a command to the end of what is done with the report that it prints when it is ready, in ms. */
async function untilReport(
  argv: readonly string[],
  variables: Readonly<Record<string, string>>,
  use: (report: { readonly base_url: string }) => Promise<void>,
): Promise<readonly number[]> {
  const startedMs = performance.now();
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'error' };
  const child = spawn(process.execPath, [...argv, '--json'], {
    cwd: ROOT,
    env: { ...process.env, ...ports, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const failed = ended.then(() => Promise.reject(new Error(`${argv.join(' ')} ended`)));
  const [output] = (await Promise.race([once(child.stdout, 'data'), failed])) as [Buffer];
  await use(JSON.parse(output.toString()) as { base_url: string });
  const tookMs = performance.now() - startedMs;
  failed.catch(() => undefined);
  child.kill();
  await ended;
  return [tookMs];
}

async function scaffold(rounds: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const dev = (argv: readonly string[], dataDir: string): Promise<readonly number[]> =>
    untilReport([...argv, 'dev'], { TILLGATE_DATA_DIR: dataDir }, () => Promise.resolve());
  const clone = ['--conditions=source', '-r', './scripts/run-sources.cjs', 'src/cli/main.ts'];
  const built = [join(SRC, 'cli/dist/main.js')];
  try {
    const starts = await medians(rounds, {
      'tillgate dev in a clone, for the first time': () => dev(clone, mkdtempSync(join(folder, 'new-'))),
      'tillgate dev, for the first time': () => dev(built, mkdtempSync(join(folder, 'new-'))),
      'tillgate dev': () => dev(built, join(folder, 'known')),
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
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '20' } } });
  for (const measure of [loading, firstResponses, scaffold]) console.log(`\n${await measure(Number(values.rounds))}`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
