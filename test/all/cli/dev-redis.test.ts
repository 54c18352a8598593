import { cliScene } from '../../cli/harness';
import type { CliScene, Outcome } from '../../cli/harness';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

interface Report {
  readonly base_url: string;
  readonly auth_url: string;
}

let redis: RedisServer;
let server: CliScene;
let running: Promise<Outcome>;
let stop: () => void = () => undefined;
let cli: CliScene;

/** `tillgate dev` in this process, with the source in a Redis that really runs, and a second command line next to it. */
beforeAll(async () => {
  redis = await startRedis();
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const ready = new Promise<void>((resolve) => {
    const env = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'silent' };
    server = cliScene({
      env: { ...env, TILLGATE_GENERATIONS: redis.url },
      fetch,
      untilStopped() {
        resolve();
        return stopped;
      },
    });
    running = server.run('dev', '--json');
  });
  await Promise.race([ready, running]);
  const { base_url, auth_url } = JSON.parse(server.output()) as Report;
  const env = {
    TILLGATE_DATA_DIR: server.dataDir,
    TILLGATE_PORT: new URL(base_url).port,
    TILLGATE_AUTH_PORT: new URL(auth_url).port,
    TILLGATE_GENERATIONS: redis.url,
  };
  cli = cliScene({ env, fetch });
});

afterAll(async () => {
  stop();
  await running;
  await redis?.stop();
});

/** Status and code of a call with a token. */
async function call(token: string): Promise<[number, string?]> {
  const { stdout } = await cli.run('call', 'GET', '/v1/orders', '--token', token, '--json');
  const { status, body } = JSON.parse(stdout) as { status: number; body: { code?: string } };
  return body.code === undefined ? [status] : [status, body.code];
}

async function newToken(client: string): Promise<string> {
  return (await cli.run('token', client)).stdout.trim();
}

async function floors(): Promise<Record<string, number>> {
  const { stdout } = await cli.run('generations', 'list', '--json');
  const listed = JSON.parse(stdout) as { floors: { client_id: string; generation: number }[] };
  return Object.fromEntries(listed.floors.map(({ client_id, generation }) => [client_id, generation]));
}

it('a change at the token server is in the store, and the API refuses the token of before', async () => {
  const token = await newToken('pos-terminal');
  expect(await call(token)).toEqual([200]);
  const described = await cli.run('clients', 'describe', 'pos-terminal', 'Till 2', '--json');
  const { generation } = JSON.parse(described.stdout) as { generation: number };
  expect((await floors())['pos-terminal']).toBe(generation);
  await eventually('the token is refused', async () => (await call(token))[0] === 401);
  expect(await call(token)).toEqual([401, 'superseded']);
});

it('the API goes by what others write into the store', async () => {
  const token = await newToken('kiosk');
  expect(await call(token)).toEqual([200]);
  expect((await cli.run('revoke', 'kiosk', '--generations', redis.url)).exitCode).toBe(0);
  await eventually('the token is refused', async () => (await call(token))[0] === 401);
});

it('a store that is flushed and cut off is filled again', async () => {
  const held = await floors();
  await redis.command('FLUSHALL');
  expect(await floors()).toEqual({});
  await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await eventually('the store is filled', async () => Object.keys(await floors()).length === 2);
  expect((await floors())['pos-terminal']).toBe(held['pos-terminal']);
});
