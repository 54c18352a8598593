/** Whether this is `npm run test:all`, which runs some suites of `npm test` again at full size. */
export const isFullRun = 'isFullRun' in globalThis;

/** How much a test does in `npm test`, and how much in `npm run test:all`. */
export function amount(inTest: number, inAll: number): number {
  return isFullRun ? inAll : inTest;
}

/** Whether `.ci/run` leaves the long suites out, and parts of others. */
export const isShortened = process.env['WITHOUT_LONG'] !== undefined;
