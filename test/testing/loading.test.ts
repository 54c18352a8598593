import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

/** A user's test without a test framework: prints which packages were loaded by then. */
const SCRIPT = `
  const { authenticate, explain } = require('./src/index');
  const { createTestIssuer, startTestIssuer, expectChallenge } = require('./src/testing/index');
  const issuer = createTestIssuer();
  const gate = authenticate(issuer.options);
  explain(issuer.token(), { gate }).then(async ({ accepted }) => {
    await (await startTestIssuer()).close();
    const names = Object.keys(require.cache).flatMap((path) => /.*node_modules.(@[^/]+.[^/]+|[^/]+)/.exec(path)?.[1] ?? []);
    console.log(JSON.stringify({ accepted, packages: [...new Set(names)] }));
  });
`;

describe('tillgate/testing in a process of its own', () => {
  it('loads no test framework, and nothing of jwks-rsa where the keys are given', () => {
    const output = execFileSync(process.execPath, ['-r', 'esbuild-register', '-e', SCRIPT], {
      cwd: resolve(__dirname, '../..'),
      encoding: 'utf8',
    });
    const { accepted, packages } = JSON.parse(output) as { accepted: boolean; packages: string[] };
    expect(accepted).toBe(true);
    expect(packages).toContain('jsonwebtoken');
    const unwanted = /^(jwks-rsa|jose|jest.*|@jest.*|expect|vitest|@vitest.*|supertest|superagent|express)$/;
    expect(packages.filter((name) => unwanted.test(name))).toEqual([]);
  });
});
