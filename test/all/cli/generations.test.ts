import { cliScene } from '../../cli/harness';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

const cli = cliScene();
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
});

it('publishes to a store that really runs, lists it, and revokes there', async () => {
  const published = await cli.run(
    'generations',
    'publish',
    'till-2',
    '--generation',
    '1790000000000',
    '--generations',
    redis.url,
    '--json',
  );
  expect([published.exitCode, JSON.parse(published.stdout)]).toEqual([
    0,
    { client_id: 'till-2', generation: 1_790_000_000_000 },
  ]);

  const before = Date.now();
  expect((await cli.run('revoke', 'till-2', '--generations', redis.url)).exitCode).toBe(0);
  const listed = JSON.parse((await cli.run('generations', 'list', '--generations', redis.url, '--json')).stdout);
  expect(listed.floors).toEqual([{ client_id: 'till-2', generation: expect.any(Number) }]);
  expect(listed.floors[0].generation).toBeGreaterThanOrEqual(before);
});
