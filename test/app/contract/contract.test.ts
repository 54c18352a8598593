import { RESOURCES } from '../../../src/app/commerce/resources';
import { isFullRun } from '../../support/amount';
import { testScaffold } from './scaffold-cases';

/** Resources with every kind of operation; a project that `tillgate init` has written calls all fifteen. */
const CALLED = ['orders', 'inventory', 'customers', ...(isFullRun ? ['payments', 'checks'] : [])];

testScaffold(
  isFullRun ? 'full' : 'quick',
  RESOURCES.filter(({ path }) => !CALLED.includes(path)),
);
