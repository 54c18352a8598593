import { generationsFromUrl } from '../../../src/gate/generation/from-url';
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

it('revoke --generations publishes to a store that really runs', async () => {
  const before = Date.now();
  expect((await cli.run('revoke', 'till-2', '--generations', redis.url)).exitCode).toBe(0);
  const source = generationsFromUrl(redis.url);
  const { changes } = await source.reader().next(0);
  await source.close?.();
  expect(changes).toEqual([['till-2', expect.any(Number)]]);
  expect(changes[0]?.[1]).toBeGreaterThanOrEqual(before);
});
