import { RESOURCES } from '../../../src/app/commerce/resources';
import { isFullRun } from '../../support/amount';
import { testScaffold } from './scaffold-cases';

/** Five of the fifteen resources, with every kind of operation; a project that `tillgate init` has written calls all. */
const CALLED = ['orders', 'payments', 'inventory', 'customers', 'checks'];

testScaffold(
  isFullRun ? 'full' : 'quick',
  RESOURCES.filter(({ path }) => !CALLED.includes(path)),
);
