import type { AnswerMatchers } from './matchers';

export { matchers } from './matchers';

/** Vitest takes Jest's matchers for its own, and has no other name that a CommonJS package could extend. */
declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- this is how Jest's types are extended
  namespace jest {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- the same
    interface Matchers<R, T = {}> extends AnswerMatchers<R> {}
  }
}
