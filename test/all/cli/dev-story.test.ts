import { whileDevRuns } from '../../cli/while-dev-runs';

describe('dev', () => {
  it('runs the whole story: token, call, 403, new Description, 401 for the old token, 200 for the new', async () => {
    await whileDevRuns([], async (run) => {
      const status = async (...argv: string[]) => JSON.parse((await run('call', ...argv, '--json')).stdout) as object;

      expect(await status('GET', '/v1/orders', '--as', 'pos-terminal')).toMatchObject({ status: 200 });
      expect(await status('POST', '/v1/orders', '--as', 'kiosk', '--data', '{}')).toMatchObject({ status: 403 });
      const old = (await run('token', 'pos-terminal')).stdout.trim();
      const described = JSON.parse((await run('clients', 'describe', 'pos-terminal', 'Till 2', '--json')).stdout);

      expect(await status('GET', '/v1/orders', '--token', old)).toMatchObject({
        status: 401,
        body: { code: 'superseded' },
      });
      expect(await status('GET', '/v1/orders', '--token', described.token.access_token)).toMatchObject({ status: 200 });
    });
  });
});
