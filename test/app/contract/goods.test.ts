import { testScaffold } from './scaffold-cases';

testScaffold('goods');
