import { runTogether } from './suites';

runTogether('testing');
