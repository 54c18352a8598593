const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);

/** Node's parser has become stricter from version to version. */
export const NODE_MAJOR = major;

/** First version of each line that responds with 431 to more headers than it keeps; all before drop the rest (CVE-2026-58044). */
const HEADERS_LIMITED: Readonly<Record<number, readonly [minor: number, patch: number]>> = {
  22: [23, 2],
  24: [18, 1],
  26: [5, 1],
};

/** Whether Node itself refuses a request with more than 1,000 headers, before any handler. */
export const NODE_REFUSES_MANY_HEADERS = reached(HEADERS_LIMITED[major]);

function reached(first: readonly [minor: number, patch: number] | undefined): boolean {
  if (!first) return major > 26;
  return minor > first[0] || (minor === first[0] && patch >= first[1]);
}
