import { otherFolders, runTogether } from './suites';

runTogether(...otherFolders());
