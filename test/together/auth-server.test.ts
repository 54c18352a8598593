import { runTogether } from './suites';

runTogether('auth-server');
