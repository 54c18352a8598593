/**
 * What forged tokens do to good ones: 200 requests per second with known and new RS256 tokens, alone and beside 5,000 per
 * second with forged ones of a key whose signatures take long, as a Markdown table. `npm run bench:flood -- --rounds 9`.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startContender } from './gate/contender';
import { HOST, startIssuer } from './gate/tokens';
import { load } from './load';
import type { LoadResult } from './load';
import { median, table } from './stats';

const [GOOD_PER_SECOND, FORGED_PER_SECOND, SECONDS] = [200, 5_000, 4];
const FORGED = 20_000;

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '9' }, only: { type: 'string', default: 'tillgate,jose' } },
});

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-flood-'));
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const expensive = { ...publicKey.export({ format: 'jwk' }), kid: 'expensive', alg: 'ES384', use: 'sig' };
  const issuer = await startIssuer('RS256', false, [expensive]);
  const [good, forged] = [join(folder, 'good.txt'), join(folder, 'forged.txt')];
  const tokens = await issuer.tokens(20_000);
  writeFileSync(good, tokens.map((token) => `Bearer ${token}\n`).join(''));
  writeFileSync(
    forged,
    tokens
      .slice(0, FORGED)
      .map((token) => `Bearer ${forge(token)}\n`)
      .join(''),
  );

  async function measure(name: string): Promise<{ readonly alone: LoadResult; readonly beside: LoadResult }> {
    const contender = await startContender(name, issuer, { threads: 2 });
    const send = (file: string, rate: number, from: number): Promise<LoadResult> =>
      load({ url: contender.url, host: HOST, file, rate, from, seconds: SECONDS });
    try {
      await send(good, GOOD_PER_SECOND, 0);
      const alone = await send(good, GOOD_PER_SECOND, 2_000);
      const flood = send(forged, FORGED_PER_SECOND, 0);
      const beside = await send(good, GOOD_PER_SECOND, 4_000);
      await flood;
      return { alone, beside };
    } finally {
      await contender.stop();
    }
  }

  const rows: (string | number)[][] = [];
  for (const name of values.only.split(',')) {
    const rounds: Awaited<ReturnType<typeof measure>>[] = [];
    for (let at = 0; at < Number(values.rounds); at++) rounds.push(await measure(name));
    const p99 = (which: 'alone' | 'beside'): number => median(rounds.map((one) => one[which].p99Ms));
    const refused = rounds.reduce((sum, { beside }) => sum + beside.refused + beside.failed, 0);
    const ratio = median(rounds.map(({ alone, beside }) => beside.p99Ms / alone.p99Ms));
    rows.push([name, p99('alone').toFixed(1), p99('beside').toFixed(1), ratio.toFixed(1), refused]);
  }
  console.log(table(['good tokens', 'p99 ms alone', 'p99 ms beside the flood', 'ratio', 'not 200'], rows));
  issuer.close();
  rmSync(folder, { recursive: true, force: true });
}

/** The same claims with the header of the expensive key and a signature that is in its range. */
function forge(token: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'ES384', typ: 'at+jwt', kid: 'expensive' })).toString('base64url');
  const [r, s] = [randomBytes(48), randomBytes(48)].map((half) => Buffer.concat([Buffer.of(0x7f), half.subarray(1)]));
  return `${header}.${token.split('.')[1]}.${Buffer.concat([r as Buffer, s as Buffer]).toString('base64url')}`;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
