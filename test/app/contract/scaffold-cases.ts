import { readSettings } from '../../../src/gate/env/settings';
import { createApp, createLog } from '../../../src/app';
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
  const scaffold = createApp({
    settings: readSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' }),
    gate: issuer.options,
    logger: createLog({ level: 'silent' }),
  });
  afterAll(() => scaffold.close());

  function requests({ path }: { readonly path: string }) {
    return path.includes('{id}') ? { path: { id: firstIdOf(path.split('/')[2]!) } } : {};
  }
  const other = half === 'goods' ? 'sales' : 'goods';
  const left = RESOURCES.filter(
    ({ path }) => HALVES[other].includes(path) || !(isFullRun || IN_EVERY_RUN.includes(path)),
  );
  const ignore = left.flatMap(({ path }) => [`/v1/${path}`, `/v1/${path}/*`]);
  const cases = contractCases({
    app: scaffold.handler,
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
