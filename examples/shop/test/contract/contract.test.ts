import { testScaffold } from './scaffold-cases';

testScaffold('quick');
