/**
 * What one token costs in this process, without HTTP: CPU time beside one bare `crypto.verify`, and that of refusals.
 * `npm run bench:tokens -- --rounds 40`. The contenders take turns in windows of a few hundred tokens; a ratio is that of
 * two windows of the same round, and a cell is the median of the rounds, so that other work on the machine affects both.
 */
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { median, percentile, table } from '../../stats';
import { startIssuer } from '../tokens';
import type { Issuer } from '../tokens';

/** Tokens of one window. */
const WINDOW = 512;
/** Windows with different tokens, after which a new gate takes over that has seen none of them. */
const WINDOWS = 10;

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '40' } } });
const rounds = Number(values.rounds);

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;

interface Credentials {
  readonly token: string | undefined;
  readonly authorization: string | undefined;
}

type Window = readonly Credentials[];
type Verify = (window: Window) => unknown;

/** What `contenders.mjs` exports; its packages are installed in bench/ only. */
interface Contenders {
  readonly credentialsOf: (token: string | undefined) => Credentials;
  readonly partsOf: (token: string) => object;
  readonly bare: (issuer: Issuer) => (parts: readonly object[]) => void;
  readonly tillgate: (issuer: Issuer, expected: number) => Promise<{ run: Verify; close(): Promise<void> }>;
  readonly floor: (issuer: Issuer) => Verify;
  readonly fastJwt: (issuer: Issuer) => Verify;
  readonly fastJwtCaching: (issuer: Issuer) => Verify;
  readonly jose: (issuer: Issuer) => Verify;
  readonly jsonwebtokenVerify: (issuer: Issuer) => Verify;
}

const CONTENDERS = './contenders.mjs';

/** CPU time of one token, in us, by contender, one figure for each round. */
type Costs = Map<string, number[]>;

async function cpuUsOf(work: () => unknown): Promise<number> {
  // Not a full collection: that would drop the hidden classes of what is garbage, and with them optimized code.
  collectGarbage({ type: 'minor' });
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / WINDOW;
}

/** Measures by turns, in an order that rotates; the rounds with the first tokens warm up. */
async function measure(turns: Readonly<Record<string, (window: number) => Promise<() => unknown>>>): Promise<Costs> {
  const names = Object.keys(turns);
  const costs: Costs = new Map(names.map((name) => [name, []]));
  for (let round = -WINDOWS; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + round + WINDOWS) % names.length] as string;
      const us = await cpuUsOf(await turns[name]!((round + WINDOWS) % WINDOWS));
      if (round >= 0) costs.get(name)?.push(us);
    }
  }
  return costs;
}

/** Spreads tokens over windows. */
async function windowsOf(contenders: Contenders, tokens: Promise<readonly string[]>): Promise<readonly Window[]> {
  const all = await tokens;
  return Array.from({ length: WINDOWS }, (_, window) =>
    all.slice(window * WINDOW, (window + 1) * WINDOW).map(contenders.credentialsOf),
  );
}

/** A turn of a gate that sees each token once: it is replaced when the windows begin again. */
function gateOnce(contenders: Contenders, issuer: Issuer, windows: readonly Window[], expected = 200) {
  let gate: Awaited<ReturnType<Contenders['tillgate']>> | undefined;
  return async (window: number): Promise<() => unknown> => {
    if (window === 0) {
      await gate?.close();
      gate = await contenders.tillgate(issuer, expected);
    }
    return () => gate?.run(windows[window] as Window);
  };
}

/** Turns of two caches that know all tokens of a window, each read from a request of its own, as from a connection. */
async function knowingWindow(contenders: Contenders, issuer: Issuer) {
  const tokens = await issuer.tokens(WINDOW);
  const gate = await contenders.tillgate(issuer, 200);
  const verify = contenders.fastJwtCaching(issuer);
  const turnOf = (run: Verify) => () => {
    const window = tokens.map(contenders.credentialsOf);
    return Promise.resolve(() => run(window));
  };
  return { gate: turnOf(gate.run), fastJwt: turnOf(verify) };
}

/** Tokens of the caches whose heap is measured. */
const CACHED = 4_096;

/** Bytes of heap that a cache holds for each token, which no request holds any more. */
async function heapOf(contenders: Contenders, tokens: readonly string[], run: Verify): Promise<number> {
  const used = (): number => (collectGarbage(), process.memoryUsage().heapUsed);
  // Code and tables that the first tokens make do not count.
  for (let times = 0; times < 3; times++) await run(tokens.slice(0, WINDOW).map(contenders.credentialsOf));
  const before = used();
  for (let times = 0; times < 3; times++) await run(tokens.map(contenders.credentialsOf));
  return Math.round((used() - before) / (tokens.length - WINDOW));
}

/** By the rows of the table of outcomes. */
async function heapPerToken(contenders: Contenders, issuer: Issuer): Promise<ReadonlyMap<string, number>> {
  const tokens = await issuer.tokens(CACHED);
  const gate = await contenders.tillgate(issuer, 200);
  return new Map([
    [KNOWN, await heapOf(contenders, tokens, gate.run)],
    [KNOWN_FAST_JWT, await heapOf(contenders, tokens, contenders.fastJwtCaching(issuer))],
  ]);
}

const KNOWN = `accepted, ${WINDOW} known tokens`;
const KNOWN_FAST_JWT = 'the same, fast-jwt with its cache';

/** Turns of a gate that knows the token of all its requests. */
async function gateKnowing(contenders: Contenders, issuer: Issuer, token: string | undefined, expected = 200) {
  const gate = await contenders.tillgate(issuer, expected);
  const window = Array.from({ length: WINDOW }, () => contenders.credentialsOf(token));
  return () => Promise.resolve(() => gate.run(window));
}

async function measureNewTokens(contenders: Contenders, issuer: Issuer): Promise<Costs> {
  const tokens = issuer.tokens(WINDOWS * WINDOW);
  const windows = await windowsOf(contenders, tokens);
  const parts = (await tokens).map(contenders.partsOf);
  const verifyBare = contenders.bare(issuer);
  const eachOf = (verify: Verify) => (window: number) => Promise.resolve(() => verify(windows[window] as Window));
  return measure({
    bare: (window) => Promise.resolve(() => verifyBare(parts.slice(window * WINDOW, (window + 1) * WINDOW))),
    tillgate: gateOnce(contenders, issuer, windows),
    'the checks alone': eachOf(contenders.floor(issuer)),
    'fast-jwt': eachOf(contenders.fastJwt(issuer)),
    jsonwebtoken: eachOf(contenders.jsonwebtokenVerify(issuer)),
    jose: eachOf(contenders.jose(issuer)),
  });
}

async function measureOutcomes(contenders: Contenders, issuer: Issuer): Promise<Costs> {
  const expired = { exp: Math.floor(Date.now() / 1000) - 3_600 };
  const foreign = { aud: 'https://another.example.com' };
  /** Close to the longest token that is accepted, all of it scopes. */
  const longest = { scope: ['orders:read', ...Array.from({ length: 950 }, (_, at) => `scope:${at}`)].join(' ') };
  const windowsWith = (changes: object) => windowsOf(contenders, issuer.tokens(WINDOWS * WINDOW, changes));
  const one = async (changes: object) => (await issuer.tokens(1, changes))[0];
  const known = (token: string | undefined, status?: number) => gateKnowing(contenders, issuer, token, status);
  const caches = await knowingWindow(contenders, issuer);
  return measure({
    'accepted, known token': await known(await one({})),
    [KNOWN]: caches.gate,
    [KNOWN_FAST_JWT]: caches.fastJwt,
    'accepted, new token with 951 scopes': gateOnce(contenders, issuer, await windowsWith(longest)),
    'no token': await known(undefined, 401),
    'expired, known token': await known(await one(expired), 401),
    'wrong audience, known token': await known(await one(foreign), 401),
    'wrong scope, known token': await known(await one({ scope: 'items:read' }), 403),
    'expired, new token': gateOnce(contenders, issuer, await windowsWith(expired), 401),
    'wrong audience, new token': gateOnce(contenders, issuer, await windowsWith(foreign), 401),
  });
}

async function main(): Promise<void> {
  process.env['NODE_ENV'] = 'production';
  const contenders = (await import(CONTENDERS)) as Contenders;
  const load = loadavg()[0]?.toFixed(1);
  console.log(
    `In process: CPU time of one token, Node ${process.version}, ${cpus().length} cores, load ${load}, ${rounds} rounds ` +
      `of ${WINDOW} tokens by turns. Median, in parentheses the middle half of the rounds.\n`,
  );
  for (const algorithm of ['RS256', 'ES256'] as const) {
    const issuer = await startIssuer(algorithm);
    const costs = await measureNewTokens(contenders, issuer);
    const bare = costs.get('bare') as number[];
    const rows = [...costs].map(([name, us]) => [
      name,
      ranged(us, 1),
      ranged(
        us.map((own, at) => own / bare[at]!),
        2,
      ),
    ]);
    console.log(`${table([`new token, ${algorithm}`, 'us', 'share of bare crypto.verify'], rows)}\n`);
    if (algorithm === 'RS256') {
      const costs = await measureOutcomes(contenders, issuer);
      const heap = await heapPerToken(contenders, issuer);
      const outcomes = [...costs].map(([name, us]) => [name, ranged(us, 1), heap.get(name) ?? '']);
      console.log(`${table(['Tillgate, RS256', 'us', 'heap per cached token, bytes'], outcomes)}\n`);
    }
    issuer.close();
  }
}

function ranged(figures: readonly number[], digits: number): string {
  const [lower, middle, upper] = [percentile(figures, 0.25), median(figures), percentile(figures, 0.75)];
  return `${middle.toFixed(digits)} (${lower.toFixed(digits)}-${upper.toFixed(digits)})`;
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
