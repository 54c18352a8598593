// What jest-light-runner imports for every suite, as it imports no TypeScript by itself.
require('./shared-process.ts');
require('./time-limit.ts');
const { suite } = require('./typescript.cjs');

// Each suite runs both anew.
delete require.cache[__filename];
delete require.cache[suite];
require(suite);
