import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import { startPublisher } from '../../../src/stores/publisher';
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

it.each([
  ['no claim', {}],
  ['a stamped number', { TILLGATE_GENERATION_CLAIM: 'client_generation' }],
  ['no generation', { TILLGATE_GENERATION_CLAIM: 'off' }],
])('revoke --generations publishes no time where the API compares by %s', async (_what, env) => {
  const { exitCode, stdout, stderr } = await cliScene({ env }).run('revoke', 'till-1', '--generations', redis.url);
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr).toContain('then give --compared-by iat, or set TILLGATE_GENERATION_CLAIM=iat');
  expect(stderr).toContain('no new token of till-1 would reach that time: raise the number there');
  const source = generationsFromUrl(redis.url);
  expect((await source.reader().next(0)).changes).toEqual([]);
  await source.close?.();
});

it.each<[what: string, env: Record<string, string>, flags: string[]]>([
  ['the option', { TILLGATE_GENERATION_CLAIM: 'client_generation' }, ['--compared-by', 'iat']],
  ['the variable', { TILLGATE_GENERATION_CLAIM: 'iat' }, []],
])('revoke --generations publishes to a store that really runs, by %s', async (_what, env, flags) => {
  const before = Date.now();
  const { exitCode, stdout } = await cliScene({ env }).run('revoke', 'till-2', '--generations', redis.url, ...flags);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    /^published generation \d{13}: earlier tokens of till-2 are refused from now on; callers that do not fetch a new one stay out until their tokens expire\n$/,
  );
  const source = generationsFromUrl(redis.url);
  const { changes } = await source.reader().next(0);
  await source.close?.();
  expect(changes).toEqual([['till-2', expect.any(Number)]]);
  expect(changes[0]?.[1]).toBeGreaterThanOrEqual(before);
  await redis.command('FLUSHALL');
});

it('revoke --generations exits with 1 when the source does not respond, and shows no password', async () => {
  const outcome = await cli.run('revoke', 'till-2', '--generations', 'redis://till:hunter2@127.0.0.1:1');
  expect(outcome.exitCode).toBe(1);
  expect(outcome.stderr).toContain('the generation source did not respond');
  expect(outcome.stdout + outcome.stderr).not.toContain('hunter2');
});
