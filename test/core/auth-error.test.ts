import { AuthError, REASONS } from '../../src';
import type { Reason } from '../../src';
import { challengeOf, problemOf, WIRE } from '../support/refusals';

const reasons = Object.keys(REASONS) as Reason[];
const open = { realm: 'api', exposeReasons: true };
const opaque = { realm: 'api', exposeReasons: false };

describe('REASONS', () => {
  it.each(reasons)('%s has the status, error, title and detail of the contract', (reason) => {
    expect(REASONS[reason]).toEqual(WIRE[reason]);
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
    const error = new AuthError(reason, { presentation: open, requiredScopes: ['a', 'b'], retryAfterSeconds: 7 });
    const details = { scopes: ['a', 'b'] };
    const challenge = challengeOf(reason, details);
    expect(error.status).toBe(WIRE[reason].status);
    expect(error.headers).toEqual(challenge === undefined ? { 'Retry-After': '7' } : { 'WWW-Authenticate': challenge });
    expect(error.problem('req-1')).toEqual(problemOf(reason, { ...details, requestId: 'req-1' }));
  });

  it.each(reasons.filter((reason) => WIRE[reason].error === 'invalid_token'))(
    '%s says only invalid_token in production',
    (reason) => {
      const error = new AuthError(reason, { presentation: opaque });
      const detail = 'The access token is not valid.';
      expect(error.headers).toEqual({
        'WWW-Authenticate': `Bearer realm="api", error="invalid_token", error_description="${detail}"`,
      });
      expect(error.problem()).toEqual({
        type: 'urn:tillgate:problem:invalid_token',
        title: 'Invalid access token',
        status: 401,
        detail,
        code: 'invalid_token',
      });
    },
  );

  it.each(reasons.filter((reason) => WIRE[reason].error !== 'invalid_token'))(
    '%s is the same in production',
    (reason) => {
      const [inProduction, elsewhere] = [opaque, open].map((presentation) => new AuthError(reason, { presentation }));
      expect([inProduction?.headers, inProduction?.problem()]).toEqual([elsewhere?.headers, elsewhere?.problem()]);
    },
  );

  it('keeps private detail and cause off every public member', () => {
    const cause = new Error('of the dependency');
    const error = new AuthError('bad_signature', { privateDetail: 'for operators', cause, presentation: open });
    expect(error).toMatchObject({ name: 'AuthError', reason: 'bad_signature', privateDetail: 'for operators', cause });
    expect(error.message).toBe(WIRE.bad_signature.detail);
    expect(JSON.stringify([error.headers, error.problem(), error.message])).not.toMatch(/operators|dependency/);
  });

  it('is an Error, an AuthError, and says its status and reason', () => {
    const error: unknown = new AuthError('expired');
    expect(error instanceof Error && error instanceof AuthError && error.status === 401 && error.reason).toBe(
      'expired',
    );
  });

  it('presents the same refusal as another gate would', () => {
    const cause = new Error('x');
    const error = new AuthError('insufficient_scope', { requiredScopes: ['a'], privateDetail: 'p', cause });
    const other = error.presentedAs({ realm: 'shop', exposeReasons: true, resourceMetadata: 'https://api.test/m' });
    expect(other).toMatchObject({ reason: 'insufficient_scope', requiredScopes: ['a'], privateDetail: 'p', cause });
    expect(other.headers).toEqual({
      'WWW-Authenticate': challengeOf('insufficient_scope', {
        realm: 'shop',
        scopes: ['a'],
        resourceMetadata: 'https://api.test/m',
      }),
    });
  });
});
