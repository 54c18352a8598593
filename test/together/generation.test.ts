import { runTogether } from './suites';

runTogether('generation');
