import { matchers } from './matchers';

// Keeps the module with the types of the matchers in the declarations of this one.
export type { ResponseMatchers } from './matchers';

const { expect } = globalThis as { expect?: { extend?: (more: typeof matchers) => void } };
if (typeof expect?.extend !== 'function') {
  throw new Error(
    '@tillgate/testing/jest: there is no global expect() here. Load it in a test file or from setupFilesAfterEnv; without ' +
      "globals: import { matchers } from '@tillgate/testing', and expect.extend(matchers).",
  );
}
expect.extend(matchers);
