import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Work per request: calls of functions in src/, and bytes allocated beyond those of Express with two empty middlewares. */
type Work = Readonly<Record<string, { readonly calls: number; readonly bytes: number }>>;

/**
 * What a request may cost at most, a tenth to a third above what it costs today. Whoever has to raise a line makes every
 * request dearer: `npm run bench` says by how much.
 */
const AT_MOST: Work = {
  hot: { calls: 73, bytes: 1_300 },
  new: { calls: 190, bytes: 11_000 },
  'no token': { calls: 60, bytes: 0 },
  expired: { calls: 105, bytes: 0 },
  'wrong scope': { calls: 120, bytes: 1_800 },
};

describe('the work of one request', () => {
  let work: Work;

  beforeAll(async () => {
    // A young generation this large is not collected while the requests are counted.
    const flags = ['--expose-gc', '--max-semi-space-size=256', '--import', 'tsx'];
    const env = { ...process.env, NODE_ENV: 'production' };
    const { stdout } = await run(process.execPath, [...flags, join(__dirname, 'count.ts')], { env });
    work = JSON.parse(stdout) as Work;
  });

  it.each(Object.entries(AT_MOST))('stays below its limits: %s', (name, { calls, bytes }) => {
    expect(work[name]?.calls).toBeGreaterThan(10);
    expect(work[name]?.calls).toBeLessThanOrEqual(calls);
    expect(work[name]?.bytes).toBeLessThanOrEqual(bytes);
  });

  it('is counted for nothing else', () => {
    expect(Object.keys(work)).toEqual(Object.keys(AT_MOST));
  });
});
