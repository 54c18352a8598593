import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startContender } from '../gate/contender';
import { startIssuer } from '../gate/tokens';
import { writeWorkload } from '../gate/workloads';
import { load } from '../load';
import { round, table } from '../stats';

/** Seconds per piece: after each it is known how many requests there were. */
const SECONDS = 10;

/** What a process holds after so many requests: express alone, and with the gate. */
export async function memory(requests: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = await startIssuer('RS256');
  try {
    const one = await writeWorkload('one', issuer, folder);
    const thousand = await writeWorkload('thousand', issuer, folder);
    const rows = [];
    for (const name of ['bare', 'tillgate']) {
      for (const workload of [one, thousand]) {
        const contender = await startContender(name, issuer);
        try {
          const startBytes = (await contender.usage()).rssBytes;
          let responses = 0;
          while (responses < requests) {
            responses += (await load({ url: contender.url, file: workload.file, seconds: SECONDS })).responses;
          }
          const endBytes = (await contender.usage()).rssBytes;
          rows.push([name, workload.name, megabytes(startBytes), megabytes(endBytes), responses]);
        } finally {
          await contender.stop();
        }
      }
    }
    return table(['app', 'tokens', 'MB at the start', 'MB at the end', 'requests'], rows);
  } finally {
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function megabytes(bytes: number): number {
  return round(bytes / 1_000_000);
}
