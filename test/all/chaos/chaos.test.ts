import { execFileSync } from 'node:child_process';
import { buildCommit } from './commit';
import { report } from './report';
import { runChaos } from './run';
import { BOUNDS } from './stand';

/** The newest release before this commit: processes of it run beside those of today. Before the first one, none does. */
function lastRelease(): string | undefined {
  const args = ['describe', '--tags', '--abbrev=0', '--match', 'v*', 'HEAD^'];
  try {
    return execFileSync('git', args, { cwd: __dirname, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

it('under faults of Redis every promise holds: a short run of npm run chaos', async () => {
  const release = lastRelease();
  const other = release === undefined ? undefined : await buildCommit(release);
  // This seed draws a wipe, a failover and a restore, with short pauses.
  const beside = other?.compiled;
  const run = runChaos({ source: 'redis', length: { faults: 3 }, seed: 55608, beside });
  const { counts, entries } = await run.finally(() => other?.remove());
  const broken = counts.filter(({ violations }) => violations.length > 0);
  if (broken.length > 0) throw new Error(report(counts, entries, BOUNDS));
  // Otherwise nothing was tested.
  for (const { rule, checked } of counts) if (rule !== 'crash') expect([rule, checked]).not.toEqual([rule, 0]);
});
