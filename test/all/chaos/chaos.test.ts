import { report } from './report';
import { runChaos } from './run';

it('under faults of Redis, gates and clocks every promise holds: a short run of npm run chaos', async () => {
  const { counts, entries } = await runChaos({ source: 'redis', seconds: 12, seed: 4 });
  const broken = counts.filter(({ violations }) => violations.length > 0);
  if (broken.length > 0) throw new Error(report(counts, entries));
  // Otherwise nothing was tested.
  expect(entries.filter(({ kind }) => kind === 'fault').length).toBeGreaterThan(1);
  for (const { rule, checked } of counts) if (rule !== 'crash') expect([rule, checked]).not.toEqual([rule, 0]);
});
