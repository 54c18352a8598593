import { explain } from '../../src';
import type { Gate } from '../../src';
import { gateApp } from '../support/gate-app';
import { GENERATION, token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { newKey, testKey } from '../support/keys';

const CHECKS = ['structure', 'header', 'key', 'signature', 'claims', 'generation', 'scope'];

describe('explain()', () => {
  it('tells every check of an accepted token, and who calls', async () => {
    const { gate } = gateApp();
    const { accepted, status, checks, auth } = await explain(token(), { gate, scopes: ['orders:read'] });
    expect({ accepted, status }).toEqual({ accepted: true, status: undefined });
    expect(checks).toEqual(CHECKS.map((check) => ({ check, outcome: 'passed' })));
    expect(auth?.clientId).toBe('pos-17');
  });

  const rows: readonly [string, string, number, string, string, TokenParts][] = [
    ['no JWT', 'structure', 401, 'malformed_token', '1 parts instead of 3', {}],
    [
      'an ID token',
      'header',
      401,
      'wrong_type',
      'The token is of another type: an access token is expected.',
      { header: { typ: 'JWT' } },
    ],
    [
      'an unknown key',
      'key',
      401,
      'unknown_key',
      'The access token is signed with a key that its issuer does not publish.',
      { header: { kid: 'x' } },
    ],
    [
      'a forged one',
      'signature',
      401,
      'bad_signature',
      'The signature of the access token is not valid.',
      { key: newKey('ES256', testKey().kid) },
    ],
    ['an expired one', 'claims', 401, 'expired', 'The access token has expired.', { claims: { exp: 1 } }],
    [
      'one without generation',
      'generation',
      401,
      'generation_missing',
      'claim "generation" is undefined',
      { claims: { generation: undefined } },
    ],
    [
      'one without the scope',
      'scope',
      403,
      'insufficient_scope',
      'The access token lacks a scope that this resource requires.',
      { claims: { scope: '' } },
    ],
  ];
  it.each(rows)('names the first check that failed for %s', async (what, failed, status, reason, detail, parts) => {
    const { gate } = gateApp();
    const raw = what === 'no JWT' ? 'x' : token(parts);
    const explanation = await explain(raw, { gate, scopes: ['orders:read'] });
    const at = CHECKS.indexOf(failed);
    expect(explanation.accepted).toBe(false);
    expect(explanation.status).toBe(status);
    expect(explanation.checks).toEqual(
      CHECKS.map((check, index) => {
        if (index === at) return { check, outcome: 'failed', reason, detail };
        return { check, outcome: index < at ? 'passed' : 'not reached' };
      }),
    );
    expect(explanation.auth?.clientId).toBe(failed === 'scope' ? 'pos-17' : undefined);
  });

  it('takes any-of as requireScope() does, and no scopes for none', async () => {
    const { gate } = gateApp();
    expect((await explain(token(), { gate, scopes: { anyOf: ['x', 'orders:read'] } })).accepted).toBe(true);
    expect((await explain(token(), { gate, scopes: { anyOf: ['x', 'y'] } })).accepted).toBe(false);
    expect((await explain(token({ claims: { scope: '' } }), { gate })).accepted).toBe(true);
  });

  it('explains a token that a later one has superseded', async () => {
    const { gate } = gateApp();
    await explain(token({ claims: { generation: GENERATION + 1 } }), { gate });
    const { checks } = await explain(token(), { gate });
    expect(checks.find(({ outcome }) => outcome === 'failed')).toMatchObject({
      check: 'generation',
      reason: 'superseded',
    });
  });

  it.each<[string, unknown, unknown, string]>([
    ['an empty token', '', {}, 'explain(): expected a token, got ""'],
    ['no token', undefined, {}, 'explain(): expected a token, got undefined'],
    ['an unknown option', 'x', { scope: ['a'] }, 'explain(): unknown option "scope"; did you mean "scopes"?'],
    ['no scopes in a list', 'x', { scopes: [] }, 'requireScope(): expected at least one scope, got an empty array'],
    [
      'something else as gate',
      'x',
      { gate: (() => {}) as unknown as Gate },
      'explain(): option "gate" must be what authenticate() returned',
    ],
  ])('refuses %s', async (_what, raw, need, message) => {
    await expect(explain(raw as string, need as object)).rejects.toThrow(new TypeError(message));
  });
});
