/**
 * What a token costs: `POST /connect/token` of the embedded token server, of oidc-provider, and of bare Express with a
 * form and a signature, in one run. `npm run bench:issuing -- --rounds 5 --seconds 4`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { load } from '../load';
import { median, table } from '../stats';
import { startContender } from './contender';
import type { Contender, Issuing } from './contender';

const CONTENDERS = ['bare', 'tillgate', 'oidc-provider'] as const;
const ALGORITHMS = ['ES256', 'RS256'] as const;
const CLIENTS = Array.from({ length: 100 }, (_, index) => `till-${index}`);

type Name = (typeof CONTENDERS)[number];

/** One measured round. */
interface Sample {
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** The medians of one contender with one algorithm. */
interface Result extends Sample {
  readonly algorithm: Issuing['algorithm'];
  readonly contender: Name;
  /** Tokens per second as a share of bare Express's: median of the shares of each round. */
  readonly shareOfBare: number;
  /** The same by CPU time, which says more while others use the machine. */
  readonly shareOfBareByCpu: number;
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '4' } },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  try {
    const results: Result[] = [];
    for (const algorithm of ALGORITHMS) results.push(...(await compare(algorithm, folder)));
    console.log(describe(results));
    save(results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All contenders stay up and take turns, so that what else happens on the machine meets each of them. */
async function compare(algorithm: Issuing['algorithm'], folder: string): Promise<Result[]> {
  const issuing = { algorithm, audience: 'https://api.example.com', clients: CLIENTS, scope: 'items:read orders:read' };
  const samples: Record<Name, Sample[]> = { bare: [], tillgate: [], 'oidc-provider': [] };
  const contenders = new Map<Name, Contender>();
  try {
    for (const name of CONTENDERS) contenders.set(name, await startContender(name, issuing));
    for (let round = 0; round <= rounds; round++) {
      for (const [name, contender] of contenders) {
        const sample = await measure(contender, join(folder, `${name}.txt`));
        // The first round warms up.
        if (round > 0) samples[name].push(sample);
        console.error(
          `${algorithm} ${round}/${rounds} ${name}: ${Math.round(sample.perSecond)}/s, ${Math.round(sample.cpuUs)} us`,
        );
      }
    }
  } finally {
    for (const contender of contenders.values()) await contender.stop();
  }
  return CONTENDERS.map((contender) => {
    const own = samples[contender];
    const bare = samples.bare;
    return {
      algorithm,
      contender,
      perSecond: median(own.map(({ perSecond }) => perSecond)),
      cpuUs: median(own.map(({ cpuUs }) => cpuUs)),
      shareOfBare: median(own.map(({ perSecond }, round) => perSecond / (bare[round]?.perSecond ?? NaN))),
      shareOfBareByCpu: median(own.map(({ cpuUs }, round) => (bare[round]?.cpuUs ?? NaN) / cpuUs)),
    };
  });
}

async function measure({ url, forms, cpuUs }: Contender, file: string): Promise<Sample> {
  writeFileSync(file, forms.join('\n') + '\n');
  await cpuUs();
  const result = await load({ url, file, lines: 'form', seconds });
  // A refusal is quick, and would count for nothing.
  if (result.refused + result.failed > 0) {
    throw new Error(`${url}: not every request got a token: ${JSON.stringify(result)}`);
  }
  return { perSecond: result.responses / result.seconds, cpuUs: (await cpuUs()) / result.responses };
}

function describe(results: readonly Result[]): string {
  const percent = (share: number): string => `${Math.round(share * 100)}%`;
  const rows = results.map(({ algorithm, contender, perSecond, cpuUs, shareOfBare, shareOfBareByCpu }) => {
    const shares = [percent(shareOfBare), percent(shareOfBareByCpu)];
    return [algorithm, contender, Math.round(perSecond), Math.round(cpuUs), ...shares];
  });
  return table(['algorithm', 'token endpoint', 'tokens/s', 'CPU us per token', 'of bare', 'of bare by CPU'], rows);
}

function save(results: readonly Result[]): void {
  const folder = join(__dirname, '..', 'results');
  mkdirSync(folder, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  const document = { date, node: process.version, rounds, seconds, results };
  writeFileSync(join(folder, 'issuing.json'), `${JSON.stringify(document, undefined, 2)}\n`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
