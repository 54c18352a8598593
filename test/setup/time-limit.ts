import { addEventHandler } from 'jest-circus';

/** For tests that hang: one that a busy machine holds up must not fail. */
const DEFAULT_LIMIT_MS = 300_000;

const { setTimeout, clearTimeout } = globalThis;

// jest-light-runner waits for ever, and knows no limit of a single test either.
addEventHandler((event, { currentDescribeBlock: { tests, hooks } }) => {
  if (event.name !== 'add_test' && event.name !== 'add_hook') return;
  const added = event.name === 'add_test' ? tests.at(-1) : hooks.at(-1);
  if (added?.fn) added.fn = limited(added.fn as () => unknown, event.timeout ?? DEFAULT_LIMIT_MS, event.asyncError);
});

/** @param place - error whose stack shows where the test is */
function limited(run: () => unknown, limitMs: number, place: Error): () => Promise<void> {
  if (run.length > 0) throw new TypeError('return a promise: a test with a callback has no time limit');
  return async () => {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise((_resolve, reject) => {
      timer = setTimeout(() => {
        place.message = `not finished after ${limitMs} ms`;
        place.stack = (place.stack ?? '').replace(/^.*/, `Error: ${place.message}`);
        reject(place);
      }, limitMs);
    });
    try {
      await Promise.race([run(), tooLate]);
    } finally {
      clearTimeout(timer);
    }
  };
}
