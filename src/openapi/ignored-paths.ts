/** Makes a test for paths that are to be passed over: as they are written, or with `/docs/*` all below. */
export function ignoredPaths(patterns: readonly string[]): (path: string) => boolean {
  return (path) => patterns.some((one) => one === path || (one.endsWith('/*') && path.startsWith(one.slice(0, -1))));
}
