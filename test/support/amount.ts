/** How much a test does in `npm test`, and how much in `npm run test:all`, which runs some suites again. */
export function amount(inTest: number, inAll: number): number {
  return 'isFullRun' in globalThis ? inAll : inTest;
}
