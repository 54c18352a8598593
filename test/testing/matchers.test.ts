import { matchers } from '../../src/testing/index';
import type { ResponseLike } from '../../src/testing/index';
import '../../src/testing/jest';
import { matchers as forVitest } from '../../src/testing/vitest';

const refused: ResponseLike = {
  status: 403,
  headers: {
    'www-authenticate': 'Bearer realm="api", error="insufficient_scope", scope="a b"',
    'content-type': 'application/problem+json; charset=utf-8',
  },
  body: {
    status: 403,
    code: 'insufficient_scope',
    required_scopes: ['a', 'b'],
    detail: 'The access token lacks a scope.',
  },
};
const ok: ResponseLike = { status: 200, headers: { 'content-type': 'application/json' }, body: [] };

/** The message of a failing matcher. */
function failureOf(expectation: () => void): string {
  try {
    expectation();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('the matcher passed');
}

describe('toHaveChallenge()', () => {
  it('passes for exactly these parameters, and for any challenge', () => {
    expect(refused).toHaveChallenge({ error: 'insufficient_scope', scope: 'a b' });
    expect(refused).toHaveChallenge({ error: 'insufficient_scope', scope: 'a b', realm: 'api' });
    expect(refused).toHaveChallenge({ error: 'insufficient_scope', scope: expect.stringContaining('b') });
    expect(refused).toHaveChallenge();
  });

  it('fails for other parameters, and without a challenge', () => {
    expect(refused).not.toHaveChallenge({ error: 'insufficient_scope' });
    expect(refused).not.toHaveChallenge({ error: 'insufficient_scope', scope: 'a b', realm: 'other' });
    expect(ok).not.toHaveChallenge({});
    expect({ ...refused, status: 200 }).not.toHaveChallenge();
    expect(ok).not.toHaveChallenge();
  });

  it('reports what was expected and received', () => {
    expect(failureOf(() => expect(refused).toHaveChallenge({ error: 'invalid_token' }))).toBe(
      "expected the challenge { error: 'invalid_token' }\n" +
        'got 403 with WWW-Authenticate: Bearer realm="api", error="insufficient_scope", scope="a b"',
    );
    expect(failureOf(() => expect(ok).toHaveChallenge())).toBe(
      'expected a challenge\ngot 200 with no WWW-Authenticate header',
    );
    expect(failureOf(() => expect(refused).not.toHaveChallenge())).toMatch(
      /^expected anything but a challenge\ngot 403/,
    );
  });
});

describe('toBeProblem()', () => {
  it('passes for the same status, code and other named members', () => {
    expect(refused).toBeProblem({ status: 403, code: 'insufficient_scope' });
    expect(refused).toBeProblem({ status: 403, code: 'insufficient_scope', required_scopes: ['a', 'b'] });
    expect(refused).toBeProblem({ status: 403, code: expect.any(String), detail: expect.stringMatching(/lacks/) });
  });

  it('fails for another status, code or member, and for a body that is not a problem', () => {
    expect(refused).not.toBeProblem({ status: 401, code: 'insufficient_scope' });
    expect(refused).not.toBeProblem({ status: 403, code: 'claim_refused' });
    expect(refused).not.toBeProblem({ status: 403, code: 'insufficient_scope', required_scopes: ['a'] });
    expect({ ...refused, status: 401 }).not.toBeProblem({ status: 403, code: 'insufficient_scope' });
    expect({ ...refused, headers: ok.headers }).not.toBeProblem({ status: 403, code: 'insufficient_scope' });
    expect(ok).not.toBeProblem({ status: 200, code: 'insufficient_scope' });
  });

  it('reports what was expected and received', () => {
    expect(failureOf(() => expect(refused).toBeProblem({ status: 401, code: 'expired' }))).toBe(
      "expected the problem { status: 401, code: 'expired' }\n" +
        "got {\n  status: 403,\n  type: 'application/problem+json',\n  body: { status: 403, code: 'insufficient_scope' }\n}",
    );
    expect(failureOf(() => expect(refused).not.toBeProblem({ status: 403, code: 'insufficient_scope' }))).toMatch(
      /^expected anything but the problem { status: 403, code: 'insufficient_scope' }\ngot /,
    );
  });
});

describe('both', () => {
  const forgotten = Promise.resolve(refused) as unknown as ResponseLike;

  it.each<[string, () => void]>([
    ['toHaveChallenge()', () => expect(forgotten).toHaveChallenge()],
    ['not.toHaveChallenge()', () => expect(forgotten).not.toHaveChallenge()],
    ['toBeProblem()', () => expect(forgotten).toBeProblem({ status: 403, code: 'expired' })],
    ['not.toBeProblem()', () => expect(forgotten).not.toBeProblem({ status: 403, code: 'expired' })],
  ])('notice a missing await: %s', (_name, expectation) => {
    expect(expectation).toThrow(
      new TypeError('expected a response with status and headers, got an object; is an await missing?'),
    );
  });

  it('work with resolves', async () => {
    await expect(Promise.resolve(refused)).resolves.toHaveChallenge();
    await expect(Promise.resolve(refused)).resolves.toBeProblem({ status: 403, code: 'insufficient_scope' });
  });

  it('are the same for Vitest', () => expect(forVitest).toBe(matchers));

  it('give Vitest the difference of a failure', () => {
    const context = { equals: (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b) };
    expect(matchers.toHaveChallenge.call(context, refused, { error: 'invalid_token' })).toMatchObject({
      pass: false,
      actual: { error: 'insufficient_scope', scope: 'a b' },
      expected: { error: 'invalid_token' },
    });
    expect(matchers.toHaveChallenge.call(context, refused)).not.toHaveProperty('actual');
  });
});
