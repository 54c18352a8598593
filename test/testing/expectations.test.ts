import { expectChallenge, expectProblem } from '../../src/testing/index';

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
    [
      'find Bearer among other schemes',
      () => expectChallenge({ ...response, headers: several }, { error: 'x', scope: 'a' }),
    ],
    ['compare status and code', () => expectProblem(response, { status: 401, code: 'expired' })],
    [
      'compare other members when named',
      () => expectProblem(response, { status: 401, code: 'expired', request_id: '7' }),
    ],
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
const several = { 'www-authenticate': 'DPoP algs="ES256", Bearer error="x", scope="a", Basic realm="token"' };

function expectDescription(error_description: string): void {
  expectChallenge(response, { error: 'invalid_token', error_description });
}
