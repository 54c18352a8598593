import { loadedPackages } from '../support/loaded-packages';

/** A user's test without a test framework. */
const TEST = `
  const { authenticate, explain } = require('./src/index');
  const { createTestIssuer, expectChallenge, startTestIssuer } = require('./src/testing/index');
  const issuer = createTestIssuer();
  const gate = authenticate(issuer.options);
  const { accepted } = await explain(issuer.token(), { gate });
  if (!accepted) throw new Error('the token was refused');
  expectChallenge({ status: 401, headers: { 'www-authenticate': 'Bearer realm="api"' } }, {});
  await (await startTestIssuer()).close();`;

describe('a test of a gate whose keys are given', () => {
  it('loads no test framework, and nothing of jwks-rsa: jose cannot be loaded in an untouched Jest', () => {
    const loaded = loadedPackages(TEST);
    expect(loaded).toContain('passport');
    const unwanted = /^(jwks-rsa|jose|jest.*|@jest.*|expect|vitest|@vitest.*|supertest|superagent|express)$/;
    expect(loaded.filter((name) => unwanted.test(name))).toEqual([]);
  });
});
