import { explain } from '../../src';
import type { Reason } from '../../src';
import { memoryGenerations } from '../../src/generation';
import { settle } from '../support/fake-time';
import { gateApp, remember } from '../support/gate-app';
import { active, ENDPOINT, introspectingGate, SECRET } from '../support/introspection';
import type { IntrospectingGate } from '../support/introspection';
import { AUDIENCE, GENERATION, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';
import { newKey } from '../support/keys';

const OPAQUE = 'mF_9.B5f-4.1JqM.opaque-and-long';
const scopes = ['orders:read'];

describe('opaque tokens (RFC 7662)', () => {
  it('are accepted when their issuer says that they are active, and reach the handler', async () => {
    const through = introspectingGate();
    const { body } = await through.get('good').expect(200);
    expect(body.auth).toEqual({
      issuer: ISSUER,
      clientId: 'pos-17',
      subject: 'pos-17',
      tokenId: 'c0ffee',
      scopes: ['orders:read', 'orders:write'],
      generation: GENERATION,
      expiresAtMs: NOW_MS + 3_540_000,
      claims: active(),
    });
    expect(through.endpoint.sent.map(({ url }) => url)).toEqual([ENDPOINT]);
  });

  it('are refused as before where introspection is not configured, without a call', async () => {
    const through = gateApp({ fetch: () => Promise.reject(new Error('no call is expected')) });
    expectRefusal(await through.get(OPAQUE), 'malformed_token', through);
  });

  it('are refused when they are not active', async () => {
    const through = introspectingGate();
    expectRefusal(await through.get(OPAQUE), 'inactive', through);
  });

  it.each<[string, object, Reason]>([
    ['another issuer', { iss: 'https://login.test/' }, 'wrong_issuer'],
    ['an issuer that is null', { iss: null }, 'invalid_claims'],
    ['another audience', { aud: 'https://other.test' }, 'wrong_audience'],
    ['no audience', { aud: undefined }, 'wrong_audience'],
    ['an exp that is over', { exp: NOW - 10 }, 'expired'],
    ['no exp', { exp: undefined }, 'invalid_claims'],
    ['no iat', { iat: undefined }, 'invalid_claims'],
    ['an iat to come', { iat: NOW + 11 }, 'not_yet_valid'],
    ['no client id', { client_id: undefined }, 'invalid_claims'],
    ['a bound key', { cnf: { jkt: 'x' } }, 'sender_constrained'],
    ['token_type DPoP', { token_type: 'DPoP' }, 'sender_constrained'],
    ['another token_type', { token_type: 'refresh_token' }, 'wrong_type'],
    ['a token_type that is null', { token_type: null }, 'wrong_type'],
    ['a refresh token of Hydra', { token_use: 'refresh_token' }, 'wrong_type'],
    ['a refresh token of Keycloak', { typ: 'Refresh' }, 'wrong_type'],
    ['no generation', { generation: undefined }, 'generation_missing'],
  ])('are refused like a JWT with these claims: %s', async (_what, changes, reason) => {
    const through = introspectingGate();
    through.endpoint.tokens.set(OPAQUE, active(changes));
    for (let use = 0; use < 3; use++) expectRefusal(await through.get(OPAQUE), reason, through);
    expect(through.endpoint.sent).toHaveLength(1);
  });

  it.each<[string, object]>([
    ['token_type DPoP', { token_type: 'DPoP' }],
    ['token_type dpop', { token_type: 'dpop' }],
    ['the typ of Keycloak', { typ: 'DPoP' }],
    ['token_use', { token_use: 'DPoP' }],
    ['an empty cnf', { token_type: 'DPoP', cnf: {} }],
    ['a cnf of another kind', { token_type: 'DPoP', cnf: { 'x5t#S256': 'x' } }],
    ['a cnf that is null', { token_type: 'DPoP', cnf: null }],
  ])(
    'are refused where they are of type DPoP and no key is named, by a gate with DPoP too: %s',
    async (_what, changes) => {
      const through = introspectingGate({ dpop: { baseUrl: 'https://api.test' }, mtls: {} });
      through.endpoint.tokens.set(OPAQUE, active(changes));
      expectRefusal(await through.get(OPAQUE), 'sender_constrained', through, { dpop: 'accepted' });
    },
  );

  it.each<[string, object]>([
    ['only what the check needs', { iss: undefined, sub: undefined, jti: undefined, token_type: undefined, nbf: NOW }],
    ['token_type in another case', { token_type: 'bearer', token_use: 'access_token' }],
    ['several audiences', { aud: ['https://other.test', AUDIENCE] }],
  ])('are accepted with %s', async (_what, changes) => {
    const through = introspectingGate();
    through.endpoint.tokens.set(OPAQUE, active(changes));
    await through.get(OPAQUE).expect(200);
  });

  it('read client id and scopes where the preset does, else from client_id and scope', async () => {
    const through = introspectingGate({ preset: 'okta' });
    const common = { client_id: undefined, scope: undefined, generation: undefined };
    through.endpoint.tokens.set('own', active({ ...common, cid: 'a', scp: ['orders:read'] }));
    through.endpoint.tokens.set('rfc', active({ ...common, client_id: 'b', scope: 'orders:read' }));
    expect((await through.get('own').expect(200)).body.auth).toMatchObject({ clientId: 'a', scopes });
    expect((await through.get('rfc').expect(200)).body.auth).toMatchObject({ clientId: 'b', scopes });
  });

  it('have the scopes of the option scopes', async () => {
    const through = introspectingGate({ scopes: { from: ['roles'], map: { till: 'orders:read' } } });
    through.endpoint.tokens.set(OPAQUE, active({ roles: ['till', 'orders:write'] }));
    expect((await through.get(OPAQUE).expect(200)).body.auth.scopes).toEqual(scopes);
    expectRefusal(
      await through.post('good'),
      'insufficient_scope',
      { ...through, reached: [] },
      { scopes: ['orders:write'] },
    );
  });
});

describe('opaque tokens that begin alike', () => {
  it.each([256, 1_024, 12_000])('each have their own verdict, also with %d characters in common', async (length) => {
    const through = introspectingGate();
    const [good, other, unknown] = ['a', 'b', 'c'].map((end) => 'x'.repeat(length) + end) as [string, string, string];
    through.endpoint.tokens.set(good, active());
    through.endpoint.tokens.set(other, active({ client_id: 'kiosk' }));
    expectRefusal(await through.get(unknown), 'inactive', through);
    for (let use = 0; use < 2; use++) {
      expect((await through.get(good).expect(200)).body.auth.clientId).toBe('pos-17');
      expect((await through.get(other).expect(200)).body.auth.clientId).toBe('kiosk');
      expect((await through.get(unknown)).status).toBe(401);
    }
    expect(through.endpoint.sent.map(({ token: asked }) => asked)).toEqual([unknown, good, other]);
  });

  it('each have their own verdict where they are asked about at the same time', async () => {
    const through = introspectingGate();
    const [good, unknown] = ['a', 'b'].map((end) => 'x'.repeat(1_024) + end) as [string, string];
    through.endpoint.tokens.set(good, active());
    const responses = await Promise.all([good, unknown, good, unknown].map((raw) => through.get(raw)));
    expect(responses.map(({ status }) => status)).toEqual([200, 401, 200, 401]);
  });
});

describe('opaque tokens, used again', () => {
  it('cost one call in cacheMs, and share req.auth', async () => {
    const through = introspectingGate();
    await remember(through, 'good');
    await through.time.advance(29_999);
    await through.get('good').expect(200);
    expect(through.endpoint.sent).toHaveLength(1);
    through.endpoint.tokens.delete('good');
    await through.time.advance(1);
    through.reached.length = 0;
    expectRefusal(await through.get('good'), 'inactive', through);
  });

  it('die at their exp, cached or not', async () => {
    const through = introspectingGate();
    through.endpoint.tokens.set(OPAQUE, active({ exp: NOW + 5 }));
    await remember(through, OPAQUE);
    await through.time.advance(14_999);
    await through.get(OPAQUE).expect(200);
    await through.time.advance(1);
    through.reached.length = 0;
    expectRefusal(await through.get(OPAQUE), 'expired', through);
    expect(through.endpoint.sent).toHaveLength(1);
  });

  it('die with the next floor, cached or not', async () => {
    const generationSource = memoryGenerations({ clock: () => NOW_MS });
    const through = introspectingGate({ generationSource });
    await remember(through, 'good');
    await generationSource.append([['pos-17', GENERATION + 1]]);
    await settle();
    through.reached.length = 0;
    expectRefusal(await through.get('good'), 'superseded', through);
    expect(through.endpoint.sent).toHaveLength(1);
  });

  it('raise the floor for JWTs of the same client, and the other way round', async () => {
    const through = introspectingGate();
    await through.get(token()).expect(200);
    through.endpoint.tokens.set(OPAQUE, active({ generation: GENERATION + 2 }));
    await through.get(OPAQUE).expect(200);
    await through.get(token()).expect(401);
    await through.get('good').expect(401);
    await through.get(token({ claims: { generation: GENERATION + 3 } })).expect(200);
    await through.get(OPAQUE).expect(401);
  });

  it('raise no floor while they are refused', async () => {
    const through = introspectingGate();
    const newer = { generation: GENERATION + 9 };
    through.endpoint.tokens.set('a', { ...active(newer), active: false });
    through.endpoint.tokens.set('b', active({ ...newer, aud: 'https://other.test' }));
    through.endpoint.tokens.set('c', active({ ...newer, token_type: 'refresh_token' }));
    for (const raw of ['a', 'b', 'c']) await through.get(raw).expect(401);
    await through.get('good').expect(200);
  });
});

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
