import { expectChallenge, expectProblem } from '../../src/testing/index';

const answer = {
  status: 401,
  headers: {
    'www-authenticate': 'Bearer realm="a \\"b\\"", error="invalid_token", error_description="It has expired."',
    'content-type': 'application/problem+json; charset=utf-8',
  },
  body: { status: 401, code: 'expired', request_id: '7' },
};
const fetched = new Response(JSON.stringify(answer.body), answer);

describe('expectChallenge() and expectProblem()', () => {
  it.each<[string, () => void]>([
    ['read quoted strings', () => expectChallenge(answer, { realm: 'a "b"', error: 'invalid_token' })],
    ['look at a description when it is named', () => expectDescription('It has expired.')],
    ['take what fetch() answers', () => expectChallenge(fetched, { error: 'invalid_token' })],
    [
      'find Bearer among other schemes',
      () => expectChallenge({ ...answer, headers: several }, { error: 'x', scope: 'a' }),
    ],
    ['look at status and code', () => expectProblem(answer, { status: 401, code: 'expired' })],
    [
      'look at other members when named',
      () => expectProblem(answer, { status: 401, code: 'expired', request_id: '7' }),
    ],
    ['look into headers of fetch()', () => expectProblem({ ...answer, headers: fetched.headers }, answer.body)],
  ])('%s', (_name, expectation) => {
    expect(expectation).not.toThrow();
  });

  it.each<[string, () => void]>([
    ['another error', () => expectChallenge(answer, { error: 'invalid_request' })],
    ['an error where none is expected', () => expectChallenge(answer, {})],
    ['another description', () => expectDescription('It is too long.')],
    ['no challenge at all', () => expectChallenge({ ...answer, headers: {} }, { error: 'invalid_token' })],
    ['a challenge of another scheme', () => expectChallenge({ ...answer, headers: basic }, {})],
    ['another code', () => expectProblem(answer, { status: 401, code: 'superseded' })],
    ['another member', () => expectProblem(answer, { status: 401, code: 'expired', request_id: '8' })],
    ['a body that disagrees', () => expectProblem({ ...answer, status: 403 }, { status: 403, code: 'expired' })],
    ['another media type', () => expectProblem({ ...answer, headers: {} }, { status: 401, code: 'expired' })],
    ['a body that is none', () => expectProblem({ status: 401, headers: {} }, { status: 401, code: 'expired' })],
  ])('fail for %s', (_name, expectation) => {
    expect(expectation).toThrow(expect.objectContaining({ name: 'AssertionError' }));
  });

  it('say what to do with a body that was not read', () => {
    expect(() => expectProblem(fetched, { status: 401, code: 'expired' })).toThrow(
      new TypeError(
        'the body of the answer is not parsed, got an object; pass { status, headers, body: await answer.json() }',
      ),
    );
  });

  it.each([undefined, null, 'answer', Promise.resolve(answer), { status: 200 }, { headers: {} }])(
    'refuse %p',
    (wrong) => {
      expect(() => expectChallenge(wrong as never, {})).toThrow(TypeError);
      expect(() => expectProblem(wrong as never, { status: 401, code: 'expired' })).toThrow(/is an await missing\?$/);
    },
  );
});

const basic = { 'www-authenticate': 'Basic realm="token"' };
const several = { 'www-authenticate': 'DPoP algs="ES256", Bearer error="x", scope="a", Basic realm="token"' };

function expectDescription(error_description: string): void {
  expectChallenge(answer, { error: 'invalid_token', error_description });
}
