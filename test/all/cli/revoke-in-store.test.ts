import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import { startPublisher } from '../../../src/gate/generation/publisher';
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

it('revoke --generations refuses a log that a publisher keeps, and says how it is done', async () => {
  const source = generationsFromUrl(redis.url);
  const record = new Map([['till-1', 1_700_000_000_000]]);
  const publisher = startPublisher({ source, changes: () => record });
  await publisher.ready();
  const { exitCode, stderr } = await cli.run('revoke', 'till-1', '--generations', redis.url);
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Change till-1 at its authorization server')]);
  const { changes } = await source.reader().next(0);
  expect(changes).toEqual([...record]);
  publisher.close();
  await source.close?.();
  await redis.command('FLUSHALL');
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

it('revoke --generations exits with 1 when the source does not respond, and shows no password', async () => {
  const outcome = await cli.run('revoke', 'till-2', '--generations', 'redis://till:hunter2@127.0.0.1:1');
  expect(outcome.exitCode).toBe(1);
  expect(outcome.stderr).toContain('the generation source did not respond');
  expect(outcome.stdout + outcome.stderr).not.toContain('hunter2');
});
