import { RESOURCES } from '../../../src/app/commerce/resources';
import { isFullRun } from '../../support/amount';
import { testScaffold } from './scaffold-cases';

/** Two suites on two cores take half of the time. */
const HALVES = {
  goods: ['items', 'categories', 'inventory', 'price-lists', 'promotions', 'menus', 'modifier-groups', 'locations'],
  sales: ['customers', 'orders', 'payments', 'tables', 'checks', 'reservations', 'kitchen-tickets'],
};
/** Five of the fifteen resources, with every kind of operation; `npm run test:all` calls all. */
const IN_EVERY_RUN = ['orders', 'payments', 'inventory', 'customers', 'checks'];

/** Registers the contract cases of one half of the scaffold. */
export function testHalf(half: keyof typeof HALVES): void {
  const other = half === 'goods' ? 'sales' : 'goods';
  const left = RESOURCES.filter(
    ({ path }) => HALVES[other].includes(path) || !(isFullRun || IN_EVERY_RUN.includes(path)),
  );
  testScaffold(isFullRun ? 'full' : 'quick', left);
}
