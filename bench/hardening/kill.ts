import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { table } from '../stats';
import { KillLedger } from './kill-ledger';
import { pause } from './suite';
import type { Suite } from './suite';

/** The whole state is written at every change: a directory is used for so many rounds before it becomes slow. */
const ROUNDS_PER_DIRECTORY = 20;
const WORKERS = 8;

/** `kill -9` of the token server at random moments. */
export const kill: Suite = {
  about: 'kill -9 of the token server at random moments while clients register, change and are removed',
  defaults: { kills: 200 },
  async run({ kills = 0 }) {
    const sum = { kills: 0, confirmed: 0, lost: 0, revived: 0, broken: 0 };
    while (sum.kills < kills) {
      const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-kill-'));
      const ledger = new KillLedger();
      const rounds = Math.min(ROUNDS_PER_DIRECTORY, kills - sum.kills);
      for (let round = 0; round < rounds; round++) {
        const from = ledger.entries.length;
        await killWhileWorking(dataDir, ledger);
        sum.kills++;
        const again = await startOn(dataDir).catch(() => undefined);
        if (!again) {
          sum.broken++;
          break;
        }
        // The last time everything, so that no later kill has harmed what an earlier one left.
        const found = await ledger.check(again.url, round === rounds - 1 ? 0 : from);
        sum.lost += found.lost;
        sum.revived += found.revived;
        await end(again.child);
      }
      sum.confirmed += ledger.confirmed;
      await rm(dataDir, { recursive: true, force: true });
    }
    return table(
      ['kill -9', 'changes confirmed', 'of them lost', 'dead tokens or clients revived', 'starts that failed'],
      [[sum.kills, sum.confirmed, sum.lost, sum.revived, sum.broken]],
    );
  },
};

async function killWhileWorking(dataDir: string, ledger: KillLedger): Promise<void> {
  const { child, url } = await startOn(dataDir);
  const work = Promise.all(Array.from({ length: WORKERS }, () => ledger.work(url)));
  await pause(50 + Math.random() * 450);
  await end(child);
  await work;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

function startOn(dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', join(__dirname, 'token-server.ts'), dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').once('data', (text: string) => resolve({ child, url: text.trim() }));
    child.once('exit', (code) => reject(new Error(`the token server ended with ${code}`)));
  });
}
