import { matchers } from './matchers';
import type { AnswerMatchers } from './matchers';

/** For whoever has `@types/jest`. */
declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- this is how Jest's types are extended
  namespace jest {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- the same
    interface Matchers<R, T = {}> extends AnswerMatchers<R> {}
  }
}

// eslint-disable-next-line @typescript-eslint/ban-ts-comment -- it goes into the declarations, where the module may be there or not
/** @ts-ignore -- for whoever has `@jest/globals`; elsewhere there may be no such module */
declare module 'expect' {
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- the same
  interface Matchers<R extends void | Promise<void>, T = unknown> extends AnswerMatchers<R> {}
}

const { expect } = globalThis as { expect?: { extend?: (more: typeof matchers) => void } };
if (typeof expect?.extend !== 'function') {
  throw new Error(
    'tillgate/testing/jest: there is no global expect() here. Load it in a test file or from setupFilesAfterEnv; without ' +
      "globals: import { matchers } from 'tillgate/testing', and expect.extend(matchers).",
  );
}
expect.extend(matchers);
