import { createApp } from '../../../src/app/app';
import { createLog } from '../../../src/app/log';
import { appSettings } from '../../../src/app/settings';
import { RESOURCES } from '../../../src/app/commerce/resources';
import { contractCases, createTestIssuer } from '../../../src/testing';
import { amount, isFullRun } from '../../support/amount';
import { firstIdOf } from './first-ids';

/** Two of them on two cores take half of the time. */
const HALVES = {
  goods: ['items', 'categories', 'inventory', 'price-lists', 'promotions', 'menus', 'modifier-groups', 'locations'],
  sales: ['customers', 'orders', 'payments', 'tables', 'checks', 'reservations', 'kitchen-tickets'],
};
/** Five of the fifteen resources, with every kind of operation; `npm run test:all` calls all. */
const IN_EVERY_RUN = ['orders', 'payments', 'inventory', 'customers', 'checks'];

/** Registers the contract cases of one half of the scaffold. */
export function testScaffold(half: keyof typeof HALVES): void {
  const issuer = createTestIssuer();
  const settings = appSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' });
  const { app, close } = createApp({ ...settings, gate: issuer.options, log: createLog('silent') });
  afterAll(close);

  function requests({ path }: { readonly path: string }) {
    return path.includes('{id}') ? { path: { id: firstIdOf(path.split('/')[2]!) } } : {};
  }
  const other = half === 'goods' ? 'sales' : 'goods';
  const left = RESOURCES.filter(
    ({ path }) => HALVES[other].includes(path) || !(isFullRun || IN_EVERY_RUN.includes(path)),
  );
  const ignore = ['/docs', '/docs/*', ...left.flatMap(({ path }) => [`/v1/${path}`, `/v1/${path}/*`])];
  const cases = contractCases({
    app,
    openapi: 'openapi.yaml',
    issuer,
    requests,
    ignore,
    depth: isFullRun ? 'full' : 'quick',
  });
  for (const { name, run } of cases) it(name, run);

  it('calls every operation, and gets a 2xx from each', () => {
    expect(cases.length).toBeGreaterThan(amount(100, 1_000));
    expect(cases.report()).toMatchObject({ notTested: [] });
  });
}
