import { runTogether } from './suites';

runTogether('cli');
