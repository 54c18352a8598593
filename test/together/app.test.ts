import { runTogether } from './suites';

runTogether('app');
