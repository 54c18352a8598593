import { authenticate, explain } from '../../src';
import type { Gate } from '../../src';
import { parseToken } from '../../src/token/jws';
import { createTestIssuer } from '../../src/testing';
import { newDataDir } from './data-dir';
import { cliScene, json } from './harness';
import { whileDevRuns } from './while-dev-runs';

const FLAWS: readonly [flags: readonly string[], reason: string][] = [
  [['--expired'], 'expired'],
  [['--superseded'], 'superseded'],
  [['--audience', 'https://other.test'], 'wrong_audience'],
  [['--foreign-key'], 'bad_signature'],
  [['--alg', 'none'], 'algorithm_not_allowed'],
];

async function refusalOf(token: string, gate: Gate): Promise<string | undefined> {
  return (await explain(token, { gate })).checks.find(({ outcome }) => outcome === 'failed')?.reason;
}

describe('a bad token of the embedded token server', () => {
  it('is refused by the API for its flaw, and says no more than a good one of this client', async () => {
    const { exitCode } = await whileDevRuns([], async (run) => {
      const tokenOf = async (...flags: string[]): Promise<string> =>
        (await run('token', 'kiosk', '--scope', 'orders:read', ...flags)).stdout.trim();
      const good = parseToken(await tokenOf()).claims;
      for (const [flags, reason] of FLAWS) {
        const bad = await tokenOf(...flags);
        const called = JSON.parse((await run('call', 'GET', '/v1/orders', '--token', bad, '--json')).stdout) as object;
        expect(called).toMatchObject({ status: 401, body: { code: reason } });
        const { client_id, scope, sub, iss } = parseToken(bad).claims;
        expect({ client_id, scope, sub, iss }).toEqual({
          ...{ client_id: good['client_id'], scope: good['scope'] },
          ...{ sub: good['sub'], iss: good['iss'] },
        });
      }
      const denied = await run('token', 'kiosk', '--scope', 'orders:write', '--expired');
      expect(denied).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringContaining('invalid_scope') });
      expect((await run('token', 'nobody', '--expired')).exitCode).toBe(2);
    });
    expect(exitCode).toBe(0);
  });

  it('for another audience is expired as well: no API accepts it', async () => {
    const { exitCode } = await whileDevRuns(['--token-server'], async (run, { auth_url, audience }) => {
      const bad = JSON.parse((await run('token', 'kiosk', '--audience', 'https://other.test', '--json')).stdout) as {
        access_token: string;
      };
      expect(bad).toEqual({ access_token: expect.any(String), refused_as: 'wrong_audience' });
      const gate = authenticate({ issuer: auth_url, audience: 'https://other.test' });
      await gate.ready();
      expect(await refusalOf(bad.access_token, gate)).toBe('expired');
      await gate.close();
      const { exitCode, stderr } = await run('token', 'kiosk', '--audience', audience);
      expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('is that of good tokens') });
    });
    expect(exitCode).toBe(0);
  });
});

describe('at another token server', () => {
  const issuer = createTestIssuer({ issuer: 'https://login.test' });
  const scene = (env: Record<string, string> = {}, access_token = issuer.token()) =>
    cliScene({
      dataDir: newDataDir(),
      env: { TILLGATE_AUTH_URL: 'https://login.test', ...env },
      respond: ({ method }) =>
        method === 'GET'
          ? json(200, { issuer: 'https://login.test', token_endpoint: 'https://login.test/token' })
          : json(200, { access_token, token_type: 'Bearer' }),
    });
  const argv = ['token', 'till', '--secret', 's', '--scope', 'a'];

  it.each([['--expired'], ['--superseded'], ['--audience', 'x']])(
    '%s says that its key is not here',
    async (...flags) => {
      const { run, dataDir } = scene();
      expect(await run(...argv, ...flags)).toEqual({
        exitCode: 2,
        stdout: '',
        stderr: `tillgate: this flaw needs the signing key, and ${dataDir} does not have the one of https://login.test: it works with the embedded token server and its TILLGATE_DATA_DIR only; --foreign-key and --alg none work anywhere\n`,
      });
    },
  );

  it.each([
    [['--foreign-key'], 'bad_signature'],
    [['--alg', 'none'], 'algorithm_not_allowed'],
  ])('%j makes one of a good token', async (flags, reason) => {
    const { run } = scene();
    const { stdout } = await run(...argv, ...flags);
    const gate = authenticate(issuer.options);
    expect(await refusalOf(stdout.trim(), gate)).toBe(reason);
    await gate.close();
  });

  it('an opaque token cannot be made bad', async () => {
    const { run } = scene({}, 'opaque');
    expect(await run(...argv, '--alg', 'none')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is not a JWT'),
    });
  });

  it.each<[string[], number, string, Record<string, string>]>([
    [['--expired', '--superseded'], 2, 'give one of --expired', {}],
    [['--alg', 'HS256'], 2, 'expected --alg none, got "HS256"', {}],
    [['--expired'], 78, 'NODE_ENV: got "production", where no bad tokens are made', { NODE_ENV: 'production' }],
  ])('%j asks for no token', async (flags, exitCode, message, env) => {
    const { run, sent } = scene(env);
    const outcome = await run(...argv, ...flags);
    expect(outcome).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining(message) });
    expect(sent).toEqual([]);
  });
});
