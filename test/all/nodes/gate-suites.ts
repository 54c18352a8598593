import { runTogether } from '../../together/suites';

// A test file for the Jest that nodes.test.ts starts; by its name it is none for `npm run test:all`.
runTogether('token', 'express');
