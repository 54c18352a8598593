import { runTogether } from './suites';

runTogether('hostile');
