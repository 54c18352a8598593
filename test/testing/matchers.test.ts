import { matchers } from '../../src/testing/index';
import type { AnswerLike } from '../../src/testing/index';
import '../../src/testing/jest';
import { matchers as forVitest } from '../../src/testing/vitest';

const refused: AnswerLike = {
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
const ok: AnswerLike = { status: 200, headers: { 'content-type': 'application/json' }, body: [] };

/** The message of the matcher that fails. */
function failureOf(expectation: () => void): string {
  try {
    expectation();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it passed');
}

describe('toHaveChallenge()', () => {
  it('holds for exactly these parameters, and for any challenge', () => {
    expect(refused).toHaveChallenge({ error: 'insufficient_scope', scope: 'a b' });
    expect(refused).toHaveChallenge({ error: 'insufficient_scope', scope: 'a b', realm: 'api' });
    expect(refused).toHaveChallenge({ error: 'insufficient_scope', scope: expect.stringContaining('b') });
    expect(refused).toHaveChallenge();
  });

  it('does not hold for others, or where there is none', () => {
    expect(refused).not.toHaveChallenge({ error: 'insufficient_scope' });
    expect(refused).not.toHaveChallenge({ error: 'insufficient_scope', scope: 'a b', realm: 'other' });
    expect(ok).not.toHaveChallenge({});
    expect(ok).not.toHaveChallenge();
  });

  it('says what was expected and what was got', () => {
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
  it('holds for status, code, and whatever else is named', () => {
    expect(refused).toBeProblem({ status: 403, code: 'insufficient_scope' });
    expect(refused).toBeProblem({ status: 403, code: 'insufficient_scope', required_scopes: ['a', 'b'] });
    expect(refused).toBeProblem({ status: 403, code: expect.any(String), detail: expect.stringMatching(/lacks/) });
  });

  it('does not hold for another status, code or member, or for what is no problem', () => {
    expect(refused).not.toBeProblem({ status: 401, code: 'insufficient_scope' });
    expect(refused).not.toBeProblem({ status: 403, code: 'claim_refused' });
    expect(refused).not.toBeProblem({ status: 403, code: 'insufficient_scope', required_scopes: ['a'] });
    expect({ ...refused, status: 401 }).not.toBeProblem({ status: 403, code: 'insufficient_scope' });
    expect({ ...refused, headers: ok.headers }).not.toBeProblem({ status: 403, code: 'insufficient_scope' });
    expect(ok).not.toBeProblem({ status: 200, code: 'insufficient_scope' });
  });

  it('says what was expected and what was got', () => {
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
  const forgotten = Promise.resolve(refused) as unknown as AnswerLike;

  it.each<[string, () => void]>([
    ['toHaveChallenge()', () => expect(forgotten).toHaveChallenge()],
    ['not.toHaveChallenge()', () => expect(forgotten).not.toHaveChallenge()],
    ['toBeProblem()', () => expect(forgotten).toBeProblem({ status: 403, code: 'expired' })],
    ['not.toBeProblem()', () => expect(forgotten).not.toBeProblem({ status: 403, code: 'expired' })],
  ])('notice an await that is missing: %s', (_name, expectation) => {
    expect(expectation).toThrow(
      new TypeError('expected an answer with status and headers, got an object; is an await missing?'),
    );
  });

  it('wait for what resolves', async () => {
    await expect(Promise.resolve(refused)).resolves.toHaveChallenge();
    await expect(Promise.resolve(refused)).resolves.toBeProblem({ status: 403, code: 'insufficient_scope' });
  });

  it('are the same for Vitest', () => expect(forVitest).toBe(matchers));

  it('show Vitest a difference where there is one', () => {
    const context = { equals: (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b) };
    expect(matchers.toHaveChallenge.call(context, refused, { error: 'invalid_token' })).toMatchObject({
      pass: false,
      actual: { error: 'insufficient_scope', scope: 'a b' },
      expected: { error: 'invalid_token' },
    });
    expect(matchers.toHaveChallenge.call(context, refused)).not.toHaveProperty('actual');
  });
});
