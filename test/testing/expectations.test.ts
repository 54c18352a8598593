import { expectChallenge, expectProblem, matchers } from '../../src/testing/index';
import type { ResponseLike } from '../../src/testing/index';
import '../../src/testing/jest';
import { matchers as forVitest } from '../../src/testing/vitest';

const response = {
  status: 401,
  headers: {
    'www-authenticate': 'Bearer realm="a \\"b\\"", error="invalid_token", error_description="It has expired."',
    'content-type': 'application/problem+json; charset=utf-8',
  },
  body: { status: 401, code: 'expired', request_id: '7' },
};
const fetched = new Response(JSON.stringify(response.body), response);

describe('expectChallenge() and expectProblem()', () => {
  it.each<[string, () => void]>([
    ['read quoted strings', () => expectChallenge(response, { realm: 'a "b"', error: 'invalid_token' })],
    ['compare a description when it is named', () => expectDescription('It has expired.')],
    ['accept a response of fetch()', () => expectChallenge(fetched, { error: 'invalid_token' })],
    ['find Bearer among other schemes', () => expectChallenge(several, { error: 'x', scope: 'a' })],
    ['compare status and code', () => expectProblem(response, { status: 401, code: 'expired' })],
    ['compare named members', () => expectProblem(response, { status: 401, code: 'expired', request_id: '7' })],
    ['read headers of fetch()', () => expectProblem({ ...response, headers: fetched.headers }, response.body)],
  ])('%s', (_name, expectation) => {
    expect(expectation).not.toThrow();
  });

  it.each<[string, () => void]>([
    ['another error', () => expectChallenge(response, { error: 'invalid_request' })],
    ['an error where none is expected', () => expectChallenge(response, {})],
    ['another description', () => expectDescription('It is too long.')],
    ['no challenge at all', () => expectChallenge({ ...response, headers: {} }, { error: 'invalid_token' })],
    ['a challenge of another scheme', () => expectChallenge({ ...response, headers: basic }, {})],
    ['another code', () => expectProblem(response, { status: 401, code: 'superseded' })],
    ['another member', () => expectProblem(response, { status: 401, code: 'expired', request_id: '8' })],
    ['a body that disagrees', () => expectProblem({ ...response, status: 403 }, { status: 403, code: 'expired' })],
    ['another media type', () => expectProblem({ ...response, headers: {} }, { status: 401, code: 'expired' })],
    ['a missing body', () => expectProblem({ status: 401, headers: {} }, { status: 401, code: 'expired' })],
  ])('fail for %s', (_name, expectation) => {
    expect(expectation).toThrow(expect.objectContaining({ name: 'AssertionError' }));
  });

  it.each([
    ['a success with the header', { ...response, status: 200 }, /^200 with WWW-Authenticate: Bearer realm=/],
    ['a success without it', { status: 200, headers: {} }, /^200 with no WWW-Authenticate header$/],
    ['a refusal without it', { status: 401, headers: {} }, /^401 with no WWW-Authenticate header$/],
    ['an outage with the header', { ...response, status: 503 }, /^503 with WWW-Authenticate: Bearer realm=/],
  ])('say what was received in place of a challenge: %s', (_what, received, actual) => {
    expect(() => expectChallenge(received, { error: 'invalid_token' })).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(/^expected the challenge { error: 'invalid_token' }\ngot \d{3} with /) as string,
        actual: expect.stringMatching(actual) as string,
        expected: { error: 'invalid_token' },
      }),
    );
  });

  it('explain a body that was not read', () => {
    expect(() => expectProblem(fetched, { status: 401, code: 'expired' })).toThrow(
      new TypeError(
        'the body of the response is not parsed, got an object; pass { status, headers, body: await response.json() }',
      ),
    );
  });

  it.each([undefined, null, 'response', Promise.resolve(response), { status: 200 }, { headers: {} }])(
    'refuse %p',
    (wrong) => {
      expect(() => expectChallenge(wrong as never, {})).toThrow(TypeError);
      expect(() => expectProblem(wrong as never, { status: 401, code: 'expired' })).toThrow(/is an await missing\?$/);
    },
  );
});

const basic = { 'www-authenticate': 'Basic realm="token"' };
const several = {
  ...response,
  headers: { 'www-authenticate': 'DPoP algs="ES256", Bearer error="x", scope="a", Basic realm="token"' },
};

function expectDescription(error_description: string): void {
  expectChallenge(response, { error: 'invalid_token', error_description });
}

const refused: ResponseLike = {
  status: 403,
  headers: {
    'www-authenticate': 'Bearer realm="api", error="insufficient_scope", scope="a b"',
    'content-type': 'application/problem+json; charset=utf-8',
  },
  body: { status: 403, code: 'insufficient_scope', required_scopes: ['a', 'b'], detail: 'It lacks a scope.' },
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
