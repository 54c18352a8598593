import { testScaffold } from './scaffold-cases';

testScaffold('sales');
