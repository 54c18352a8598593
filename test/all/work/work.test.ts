import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Work per request: calls of functions in src/, and bytes allocated beyond those of Express with two empty middlewares. */
type Work = Readonly<Record<string, { readonly calls: number; readonly bytes: number }>>;

/**
 * What a request may cost at most, a call or a few hundredths above what it costs: both counts are the same on every machine.
 * `req.auth` alone is 800 bytes of it: V8 makes a new hidden class for a member that is added to Express's request.
 * The floors of two tables, their records and the state of the log are 4 calls of `hot` and `new`, the scopes of all guards of a row 11 of
 * 'wrong scope'. Refusals without a logger prepare no line.
 * A higher limit makes every request dearer: `npm run bench` shows by how much.
 */
const AT_MOST: Work = {
  hot: { calls: 37, bytes: 2_950 },
  new: { calls: 106, bytes: 16_700 },
  'no token': { calls: 24, bytes: 0 },
  expired: { calls: 51, bytes: 300 },
  'wrong scope': { calls: 80, bytes: 1_900 },
};

describe('the work of one request', () => {
  let work: Work;

  beforeAll(async () => {
    // A young generation this large is not collected while the requests are counted.
    // V8 optimizes when it finds the time, inlines calls and leaves out objects: a count would depend on the machine.
    const flags = ['--no-opt', '--expose-gc', '--max-semi-space-size=256', '--conditions=source', '--import', 'tsx'];
    const env = { ...process.env, NODE_ENV: 'production' };
    const { stdout } = await run(process.execPath, [...flags, join(__dirname, 'count.ts')], { env });
    work = JSON.parse(stdout) as Work;
  }, 600_000);

  it.each(Object.entries(AT_MOST))('stays below its limits: %s', (name, { calls, bytes }) => {
    expect(work[name]?.calls).toBeGreaterThan(10);
    expect(work[name]?.calls).toBeLessThanOrEqual(calls);
    // A fraction is something that happened once in many requests: a timer fired, and the count depends on the machine.
    expect(Number.isInteger(work[name]?.calls)).toBe(true);
    expect(work[name]?.bytes).toBeLessThanOrEqual(bytes);
  });

  it('is counted for nothing else', () => {
    expect(Object.keys(work)).toEqual(Object.keys(AT_MOST));
  });
});
