import fc from 'fast-check';
import { AuthError, REASONS } from '../../../src/gate/index';
import type { Reason } from '../../../src/gate/index';
import { quote, serializeChallenge } from '../../../src/gate/core/challenge';
import { identify, presentError } from '../../../src/gate/core/errors';
import { refusalHeaders, refusalProblem } from '../../../src/gate/core/refusal';
import { challengeOf, problemOf, WIRE } from '../../support/refusals';
import { anyCharacter } from '../../support/any-character';
import { parseQuotedParameters } from '../../support/strict-challenge';

const reasons = Object.keys(REASONS) as Reason[];
const open = { realm: 'api', exposeReasons: true };
const opaque = { realm: 'api', exposeReasons: false };
const CLIENT = { issuer: 'https://login.test', clientId: 'pos-17' };

describe('REASONS', () => {
  it.each(reasons)('%s has the status, error, title and detail of the contract', (reason) => {
    const { status, error, title, detail, cause, caller, operator } = REASONS[reason];
    expect({ status, ...(error && { error }), title, detail }).toEqual(WIRE[reason]);
    for (const text of [cause, caller, operator]) expect(text).toMatch(/[.`)]$/);
  });

  it('is the whole contract', () => {
    expect(reasons).toEqual(Object.keys(WIRE));
  });

  it.each(reasons)(
    '%s says its detail in characters that error_description may have (RFC 6750 section 3)',
    (reason) => {
      expect(REASONS[reason].detail).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
    },
  );
});

describe('AuthError', () => {
  it.each(reasons)('%s: challenge, body and status come from one row', (reason) => {
    const error = new AuthError(reason, { requiredScopes: ['a', 'b'], retryAfterSeconds: 7 });
    const details = { scopes: ['a', 'b'] };
    const challenge = challengeOf(reason, details);
    expect(error.status).toBe(WIRE[reason].status);
    const headers = challenge === undefined ? { 'Retry-After': '7' } : { 'WWW-Authenticate': challenge };
    expect(refusalHeaders(error, open)).toEqual(headers);
    expect(refusalProblem(error, open, 'req-1')).toEqual(problemOf(reason, { ...details, requestId: 'req-1' }));
  });

  const scope = (at: number): string => `orders-${at}:read`;
  const dpop = { algorithms: 'ES256', used: false };

  it.each([
    ['of a guard', 'insufficient_scope', open],
    ['of a guard, with DPoP', 'insufficient_scope', { ...open, dpop }],
    [
      'of a gate',
      'missing_token',
      { ...open, resourceMetadata: 'https://api.test/.well-known/oauth-protected-resource' },
    ],
  ] as const)('has a challenge of at most 2 KB, which lists whole scopes: %s', (_what, reason, presentation) => {
    const challengeOfScopes = (count: number): string => {
      const scopes = Array.from({ length: count }, (_, at) => scope(at));
      const ofGate = reason === 'missing_token';
      const error = new AuthError(reason, ofGate ? {} : { requiredScopes: scopes });
      const headers = refusalHeaders(error, ofGate ? { ...presentation, challengeScopes: scopes } : presentation);
      expect(refusalProblem(error, presentation).required_scopes).toEqual(ofGate ? undefined : scopes);
      return headers['WWW-Authenticate'] as string;
    };
    let listed = 0;
    for (let count = 0; count < 200; count++) {
      const challenge = challengeOfScopes(count);
      const scopes = /scope="([^"]*)"/.exec(challenge)![1]!.split(' ').filter(Boolean);
      expect(scopes).toEqual(Array.from({ length: scopes.length }, (_, at) => scope(at)));
      expect(challenge.length).toBeLessThanOrEqual(2_048);
      if (scopes.length < count) {
        listed ||= scopes.length;
        expect([scopes.length, challenge.length + ` ${scope(listed)}`.length > 2_048]).toEqual([listed, true]);
      } else expect(listed).toBe(0);
    }
    expect(listed).toBeGreaterThan(50);
    expect(challengeOfScopes(10_000)).toBe(challengeOfScopes(listed));
  });

  it('leaves scope out where the first one has no room', () => {
    const error = new AuthError('insufficient_scope', { requiredScopes: ['x'.repeat(2_048), 'y'] });
    expect(error.headers['WWW-Authenticate']).toBe(
      'Bearer realm="api", error="insufficient_scope", error_description="The access token lacks a scope that this resource requires."',
    );
  });

  it.each(reasons.filter((reason) => WIRE[reason].error === 'invalid_token'))(
    '%s says only invalid_token in production',
    (reason) => {
      const error = new AuthError(reason);
      const detail = 'The access token is not valid.';
      expect(error.headers).toEqual({
        'WWW-Authenticate': `Bearer realm="api", error="invalid_token", error_description="${detail}"`,
      });
      expect(refusalProblem(error, opaque)).toEqual({
        type: 'about:blank',
        title: 'Unauthorized',
        status: 401,
        detail,
        code: 'invalid_token',
      });
    },
  );

  it.each(reasons.filter((reason) => WIRE[reason].error !== 'invalid_token'))(
    '%s is the same in production',
    (reason) => {
      const error = new AuthError(reason);
      const [inProduction, elsewhere] = [opaque, open].map((presentation) => [
        refusalHeaders(error, presentation),
        refusalProblem(error, presentation),
      ]);
      expect(inProduction).toEqual(elsewhere);
      expect(error.headers).toEqual(refusalHeaders(error, opaque));
    },
  );

  it('keeps private detail and cause off every public member', () => {
    const cause = new Error('of the dependency');
    const error = new AuthError('bad_signature', { privateDetail: 'for operators', cause });
    expect(error).toMatchObject({ name: 'AuthError', reason: 'bad_signature', privateDetail: 'for operators', cause });
    expect(error.message).toBe('The access token is not valid.');
    const shown = JSON.stringify([error, { ...error }, error.headers, refusalProblem(error, opaque), error.message]);
    expect(shown).not.toMatch(/operators|dependency|bad_signature/);
  });

  it('has what error handlers look for, and shows no reason by enumeration', () => {
    const error = new AuthError('expired');
    expect({ ...error }).toEqual({ status: 401, statusCode: 401, code: 'invalid_token', expose: true });
    expect(error.message).toBe('The access token is not valid.');
    expect({ ...new AuthError('insufficient_scope') }).toMatchObject({ status: 403, code: 'insufficient_scope' });
  });

  it('has the code, message and headers of the gate that refused, and its own client', () => {
    const error = identify(new AuthError('expired', { privateDetail: 'exp' }), CLIENT) as AuthError;
    const presented = presentError(error, { ...open, realm: 'shop' });
    expect(presented).toMatchObject({ code: 'expired', message: WIRE.expired.detail, privateDetail: 'exp' });
    expect(presented.client).toEqual(CLIENT);
    expect(presented.headers['WWW-Authenticate']).toMatch(/^Bearer realm="shop", error="invalid_token"/);
    expect([error.code, presentError(presented, opaque).code]).toEqual(['invalid_token', 'invalid_token']);
  });

  it('keeps the client of the check that knows it first', () => {
    const error = identify(new AuthError('expired'), CLIENT);
    identify(error, { issuer: 'https://other.test', clientId: 'other' });
    identify(error, undefined);
    expect((error as AuthError).client).toEqual(CLIENT);
    expect(new AuthError('expired').client).toBeUndefined();
  });

  it('names the page about a problem when there is one', () => {
    const problemTypes = 'https://api.test/problems/';
    const typeIn = (presentation: object): unknown =>
      refusalProblem(new AuthError('expired'), { ...opaque, problemTypes, ...presentation }).type;
    expect(typeIn({})).toBe('https://api.test/problems/invalid_token');
    expect(typeIn({ exposeReasons: true })).toBe('https://api.test/problems/expired');
  });

  it('has no stack trace, and does not switch off those of other errors', () => {
    const before = Error.stackTraceLimit;
    expect(new AuthError('expired').stack).not.toContain('\n');
    for (const reason of ['nonsense', 'toString', '__proto__', undefined]) {
      expect(() => new AuthError(reason as Reason)).toThrow(TypeError);
    }
    const hostile = Object.defineProperty({}, 'cause', { enumerable: true, get: () => fail() });
    expect(() => new AuthError('expired', hostile)).toThrow('of a getter');
    expect(Error.stackTraceLimit).toBe(before);
    expect(new Error('x').stack).toContain('\n');
  });

  it('leaves stack traces on when the stack overflows', () => {
    const before = Error.stackTraceLimit;
    const recurse = (): unknown => [new AuthError('expired'), recurse()];
    expect(recurse).toThrow(RangeError);
    expect(Error.stackTraceLimit).toBe(before);
  });
});

function fail(): never {
  throw new Error('of a getter');
}

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', '\\', '\r', '\n', '\0', '\x7f', 'ö', '🔑', ','),
    fc.string({ minLength: 1, maxLength: 1 }),
    anyCharacter,
  ),
});

describe('serializeChallenge', () => {
  it('round-trips any text in any parameter through an independent parser, what is not printable ASCII as ?', () => {
    const names = ['realm', 'error_description', 'scope'];
    const texts = fc.oneof(fc.string({ unit: 'grapheme-ascii' }), anyText);
    fc.assert(
      fc.property(fc.array(texts, { minLength: names.length, maxLength: names.length }), (values) => {
        const given = names.map((name, at) => [name, values[at] as string] as const);
        const expected = given.map(([name, value]) => [name, value.replace(/[^\x20-\x7e]/gu, '?')] as const);
        const parsed = parseQuotedParameters(serializeChallenge('Bearer', given));
        expect(parsed).toEqual({ scheme: 'Bearer', parameters: new Map(expected) });
      }),
      { numRuns: 200 },
    );
  });

  it('keeps the order and omits parameters without a value', () => {
    expect(
      serializeChallenge('Bearer', [
        ['realm', 'a'],
        ['error', undefined],
        ['scope', 'b c'],
      ]),
    ).toBe('Bearer realm="a", scope="b c"');
    expect(serializeChallenge('Basic', [])).toBe('Basic');
    expect(serializeChallenge('Basic', [['realm', '']])).toBe('Basic realm=""');
  });

  it.each([
    ['a quote', 'say "no"', '"say \\"no\\""'],
    ['a backslash', 'a\\b', '"a\\\\b"'],
    ['CR LF', 'a\r\nSet-Cookie: x', '"a??Set-Cookie: x"'],
    ['NUL and DEL', '\0\x7f', '"??"'],
    ['a letter beyond ASCII', 'größer', '"gr??er"'],
    ['an emoji, once', '🔑', '"?"'],
    ['a lone surrogate', '\ud800', '"?"'],
  ])('writes %s as a quoted-string (RFC 9110 section 5.6.4)', (_what, text, quoted) => {
    expect(quote(text)).toBe(quoted);
  });
});
