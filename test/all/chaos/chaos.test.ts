import { report } from './report';
import { runChaos } from './run';

it('under faults of Redis, gates and clocks every promise holds: a short run of npm run chaos', async () => {
  const { counts, entries } = await runChaos({ source: 'redis', seconds: 12, seed: 2014 });
  const broken = counts.filter(({ violations }) => violations.length > 0);
  if (broken.length > 0) throw new Error(report(counts, entries));
  // Otherwise nothing was tested. This seed draws a wipe, a restore, a failover and kills, with short pauses.
  expect(entries.filter(({ kind }) => kind === 'fault').length).toBeGreaterThanOrEqual(5);
  for (const { rule, checked } of counts) if (rule !== 'crash') expect([rule, checked]).not.toEqual([rule, 0]);
});
