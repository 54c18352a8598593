import { runTogether } from './suites';

runTogether('behaviours');
