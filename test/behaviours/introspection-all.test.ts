import { explain } from '../../src';
import type { Reason } from '../../src';
import { remember } from '../support/gate-app';
import { active, ENDPOINT, introspectingGate, SECRET } from '../support/introspection';
import type { IntrospectingGate } from '../support/introspection';
import { GENERATION, NOW, NOW_MS, token } from '../support/issuer';
import { newKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';

const credential = { url: ENDPOINT, clientId: 'api:1', clientSecret: SECRET };

describe("introspection with tokens: 'all'", () => {
  const introspection = { ...credential, tokens: 'all' } as const;
  // Signed once: two signatures of ES256 differ.
  const raw = token();
  const lightweight = token({ claims: { aud: undefined, sub: undefined, scope: undefined } });

  it('asks about a JWT too, and refuses one that was revoked', async () => {
    const through = introspectingGate({ introspection });
    expectRefusal(await through.get(raw), 'inactive', through);
    through.endpoint.tokens.set(raw, active());
    await through.time.advance(5_000);
    await remember(through, raw);
    expect(through.endpoint.sent.map(({ token: asked }) => asked)).toEqual([raw, raw]);
    through.endpoint.tokens.delete(raw);
    await through.time.advance(29_999);
    await through.get(raw).expect(200);
    await through.time.advance(1);
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'inactive', through);
  });

  it('takes what a lightweight JWT leaves out from the response', async () => {
    const through = introspectingGate({ introspection });
    through.endpoint.tokens.set(lightweight, active());
    await remember(through, lightweight);
    const { body } = await through.get(lightweight).expect(200);
    expect(body.auth).toMatchObject({ subject: 'pos-17', scopes: ['orders:read', 'orders:write'], claims: active() });
  });

  it.each<[string, object, Reason]>([
    ['the scopes', { scope: 'x' }, 'insufficient_scope'],
    ['the audience', { aud: 'https://other.test' }, 'wrong_audience'],
    ['the generation', { generation: GENERATION - 1 }, 'superseded'],
    ['the end', { exp: NOW - 10 }, 'expired'],
    ['the key', { cnf: { jkt: 'x' } }, 'sender_constrained'],
  ])('lets a response widen nothing that was signed: %s', async (_what, claims, reason) => {
    const through = introspectingGate({ introspection });
    const newer = token({ claims: { jti: 'newer' } });
    const narrow = token({ claims: { ...claims } });
    for (const one of [newer, narrow]) through.endpoint.tokens.set(one, active({ cnf: undefined }));
    await through.get(newer).expect(200);
    through.reached.length = 0;
    const scopes = reason === 'insufficient_scope' ? { scopes: ['orders:read'] } : {};
    for (let use = 0; use < 2; use++) expectRefusal(await through.get(narrow), reason, through, scopes);
  });

  it.each<[string, object, Reason]>([
    ['a key', { cnf: { jkt: 'x' } }, 'sender_constrained'],
    ['token_type DPoP', { token_type: 'DPoP' }, 'sender_constrained'],
    ['another kind of token', { token_type: 'refresh_token' }, 'wrong_type'],
  ])('minds %s that only the response has', async (_what, changes, reason) => {
    const through = introspectingGate({ introspection });
    through.endpoint.tokens.set(raw, active(changes));
    expectRefusal(await through.get(raw), reason, through);
  });

  it.each<[string, string, Reason]>([
    ['with a bad signature', token({ key: newKey('ES256') }), 'bad_signature'],
    ['of another type', token({ header: { typ: 'JWT' } }), 'wrong_type'],
    ['of an unknown key', token({ header: { kid: 'other' } }), 'unknown_key'],
  ])('does not ask about a JWT %s', async (_what, bad, reason) => {
    const through = introspectingGate({ introspection });
    through.endpoint.tokens.set(bad, active());
    expectRefusal(await through.get(bad), reason, through);
    expect(through.endpoint.sent).toEqual([]);
  });

  it('explains it as a check of its own', async () => {
    const { gate } = introspectingGate({ introspection });
    const { checks } = await explain(token(), { gate });
    expect(checks.map(({ check, outcome }) => [check, outcome])).toEqual([
      ...['structure', 'header', 'key', 'signature'].map((check) => [check, 'passed']),
      ['introspection', 'failed'],
      ...['claims', 'generation', 'scope'].map((check) => [check, 'not reached']),
    ]);
  });
});

describe('introspection: acceptWithout', () => {
  const gate = (acceptWithout: readonly ('aud' | 'exp' | 'iat')[], changes: object): IntrospectingGate => {
    const through = introspectingGate({ introspection: { ...credential, acceptWithout }, generationClaim: false });
    through.endpoint.tokens.set('opaque', active(changes));
    return through;
  };

  it.each(['aud', 'exp', 'iat'] as const)('accepts a response without %s where it is named only', async (name) => {
    const through = gate([name], { [name]: undefined });
    const { body } = await through.get('opaque').expect(200);
    expect(Object.hasOwn(body.auth.claims as object, name)).toBe(false);
    const others = (['aud', 'exp', 'iat'] as const).filter((other) => other !== name);
    const strict = gate(others, { [name]: undefined });
    expectRefusal(await strict.get('opaque'), name === 'aud' ? 'wrong_audience' : 'invalid_claims', strict);
  });

  it.each<[string, object, Reason]>([
    ['another audience', { aud: 'https://other.test' }, 'wrong_audience'],
    ['an exp that is null', { exp: null }, 'invalid_claims'],
    ['an exp that is over', { exp: NOW - 10 }, 'expired'],
    ['an iat to come', { iat: NOW + 11 }, 'not_yet_valid'],
    ['an iat of too long ago, and no exp', { exp: undefined, iat: NOW - 86_410 }, 'expired'],
    ['an exp of too far away, and no iat', { exp: NOW + 86_401, iat: undefined }, 'lifetime_too_long'],
  ])('still refuses %s', async (_what, changes, reason) => {
    const through = gate(['aud', 'exp', 'iat'], changes);
    expectRefusal(await through.get('opaque'), reason, through);
  });

  it('ends a token without exp maxTokenAgeSeconds after iat', async () => {
    const { body } = await gate(['exp'], { exp: undefined, iat: NOW - 60 })
      .get('opaque')
      .expect(200);
    expect(body.auth.expiresAtMs).toBe(NOW_MS - 60_000 + 86_400_000);
  });

  it.each<[object, string]>([
    [{ acceptWithout: ['iat'] }, '"introspection.acceptWithout" can have "iat" only with generationClaim: false'],
    [
      { acceptWithout: ['client_id'] },
      '"introspection.acceptWithout" must be an array with some of aud, exp, iat, got an array of 1',
    ],
    [{ acceptWithout: 'aud' }, '"introspection.acceptWithout" must be an array with some of aud, exp, iat, got "aud"'],
    [{ tokens: 'jwt' }, '"introspection.tokens" must be one of opaque, all, got "jwt"'],
  ])('is checked at construction: %j', (changes, message) => {
    expect(() => introspectingGate({ introspection: { ...credential, ...changes } })).toThrow(
      new TypeError(`authenticate(): option ${message}`),
    );
  });
});
