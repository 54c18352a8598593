import { createApp } from '../../../src/app/app';
import { createLog } from '../../../src/app/log';
import { appSettings } from '../../../src/app/settings';
import { contractCases, createTestIssuer } from '../../../src/testing';
import { firstIdOf } from './first-ids';

/**
 * Registers the contract cases of the scaffold: every operation of openapi.yaml with every kind of token, good and bad.
 *
 * @param left - resources that are left out
 */
export function testScaffold(depth: 'quick' | 'full', left: readonly { readonly path: string }[] = []): void {
  const issuer = createTestIssuer();
  const settings = appSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' });
  const { app, close } = createApp({ ...settings, gate: issuer.options, log: createLog('silent') });
  afterAll(close);

  function requests({ path }: { readonly path: string }) {
    return path.includes('{id}') ? { path: { id: firstIdOf(path.split('/')[2]!) } } : {};
  }
  const ignore = ['/docs', '/docs/*', ...left.flatMap(({ path }) => [`/v1/${path}`, `/v1/${path}/*`])];
  const cases = contractCases({ app, openapi: 'openapi.yaml', issuer, requests, ignore, depth });
  for (const { name, run } of cases) it(name, run);

  const started = process.cpuUsage();

  it('calls every operation, and gets a 2xx from each', () => {
    expect(cases.length).toBeGreaterThan(100);
    // One test for each class of an operation: what a whole project has, and what it costs with quick cases, on a busy machine too.
    expect(cases.length).toBeLessThan(1_500);
    const { user, system } = process.cpuUsage(started);
    if (depth === 'quick') expect((user + system) / 1_000_000).toBeLessThan(30);
    expect(cases.report()).toMatchObject({ notTested: [] });
  });
}
