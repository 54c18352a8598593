import { explain, requireScope } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import { memoryGenerations } from '../../../src/gate/generation';
import { dpop, mtls } from '../../../src/gate/possession';
import { BASE_URL, callerKey, thumbprint, withProofs } from '../../support/dpop';
import { settle } from '../../support/fake-time';
import { gateApp, remember } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { active, ENDPOINT, introspectingGate, SECRET } from '../../support/introspection';
import { AUDIENCE, GENERATION, ISSUER, NOW, NOW_MS, token } from '../../support/issuer';
import { many } from '../../support/introspector-scene';
import { eventually } from '../../support/key-server';
import { jwks, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

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

  it.each(['undefined', 'null'])(
    'are not asked about where the client sent the text %s: it had no token',
    async (text) => {
      const through = introspectingGate();
      expectRefusal(await through.get(text), 'malformed_token', through);
      expect(through.endpoint.sent).toEqual([]);
    },
  );

  it.each<[string, object, Reason]>([
    ['active: false', { active: false }, 'inactive'],
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
    ['a generation of null', { generation: null }, 'generation_missing'],
  ])('are refused, and asked about once, with %s', async (_what, changes, reason) => {
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
  ])('are refused where they are of type DPoP and name no key, by a gate with DPoP too: %s', async (_what, changes) => {
    const through = introspectingGate({ possession: [dpop({ baseUrl: 'https://api.test' }), mtls()] });
    through.endpoint.tokens.set(OPAQUE, active(changes));
    expectRefusal(await through.get(OPAQUE), 'sender_constrained', through, { dpop: 'accepted' });
  });

  it('are accepted with a proof by the key that they name where they are of type DPoP', async () => {
    const through = introspectingGate({ possession: [dpop({ baseUrl: BASE_URL })] });
    through.endpoint.tokens.set(OPAQUE, active({ token_type: 'DPoP', cnf: { jkt: thumbprint(callerKey()) } }));
    await withProofs(through).send({ token: OPAQUE }).expect(200);
  });

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
    through.reached.length = 0;
    expectRefusal(await through.post('good'), 'insufficient_scope', through, { scopes: ['orders:write'] });
  });
});

it('opaque tokens with 12,000 characters in common each have their own verdict', async () => {
  const through = introspectingGate();
  const begin = 'x'.repeat(12_000);
  through.endpoint.tokens.set(`${begin}a`, active());
  through.endpoint.tokens.set(`${begin}b`, active({ client_id: 'kiosk' }));
  for (let use = 0; use < 2; use++) {
    expect((await through.get(`${begin}a`).expect(200)).body.auth.clientId).toBe('pos-17');
    expect((await through.get(`${begin}b`).expect(200)).body.auth.clientId).toBe('kiosk');
    expect((await through.get(`${begin}c`)).body.code).toBe('inactive');
  }
  expect(through.endpoint.sent.map(({ token: asked }) => asked?.at(-1))).toEqual(['a', 'b', 'c']);
});

describe('opaque tokens, used again', () => {
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

describe('an introspection response without client_id (optional in RFC 7662)', () => {
  const nameless = { client_id: undefined };

  it.each<[string, GateAppOptions, object]>([
    ['the generation is checked', {}, {}],
    ['the accepted clients are named', { generationClaim: false, clientIds: ['pos-17', 'sub:pos-17'] }, {}],
    ['sub is missing too', { generationClaim: false }, { sub: undefined }],
    ['sub is empty', { generationClaim: false }, { sub: '' }],
    ['sub is not a string', { generationClaim: false }, { sub: 17 }],
  ])('is refused where %s, and the log says what the server left out', async (_what, options, changes) => {
    const through = introspectingGate(options);
    through.endpoint.tokens.set(OPAQUE, active({ ...nameless, ...changes }));
    expectRefusal(await through.get(OPAQUE), 'invalid_claims', through, {
      detail:
        'the introspection response has no client_id: have the authorization server return it (optional in RFC 7662); with ' +
        'generationClaim: false and without clientIds, sub is enough',
    });
  });

  it('is accepted with generationClaim: false and without clientIds, and the client is never called like a user', async () => {
    const through = introspectingGate({ generationClaim: false });
    through.endpoint.tokens.set(OPAQUE, active(nameless));
    const { body } = await through.get(OPAQUE).expect(200);
    expect(body.auth).toMatchObject({ clientId: 'sub:pos-17', subject: 'pos-17' });
    expect(Object.hasOwn(body.auth.claims as object, 'client_id')).toBe(false);
    expect((await through.get('good').expect(200)).body.auth.clientId).toBe('pos-17');
  });
});

it('an introspection endpoint that is down is an outage, 503, never a bad token, and nothing of it is shown', async () => {
  const through = introspectingGate();
  through.endpoint.down = new Response(`${SECRET} ${OPAQUE}`, { status: 401 });
  const response = await through.get(OPAQUE.padEnd(64, 'x'));
  expectRefusal(response, 'introspection_unavailable', through);
  const secrets = [OPAQUE, SECRET, Buffer.from(SECRET).toString('base64'), 'a+secret'];
  const output = JSON.stringify([response.headers, response.text, through.log.entries, through.gate.status()]);
  expect(secrets.filter((secret) => output.includes(secret))).toEqual([]);
  await through.get(token()).expect(200);
});

/** A JWE (RFC 7516 section 7.1) with a header and four parts of made-up bytes; with `dir` the second is empty. */
function encrypted(alg: string): string {
  const header = Buffer.from(JSON.stringify({ alg, enc: 'A256GCM', typ: 'at+jwt' })).toString('base64url');
  return [header, alg === 'dir' ? '' : 'a2V5', 'aXY', 'Y2lwaGVydGV4dA', 'dGFn'].join('.');
}

it('a flood of one site does not delay the token of another', async () => {
  const through = introspectingGate({
    routes(app, reach) {
      app.set('trust proxy', true);
      app.get('/v1/orders', requireScope('orders:read'), reach);
    },
  });
  const from = (address: string, raw: string) => through.get(raw).set('X-Forwarded-For', address).then();
  through.endpoint.hold();
  const flood = many(20, 'made-up-').map((raw) => from('198.51.100.7', raw));
  await eventually(() => through.presented.length === 20);
  const good = from('203.0.113.1', 'good');
  await eventually(() => through.endpoint.sent.length === 17);
  expect(through.endpoint.sent[16]?.token).toBe('good');
  through.endpoint.release();
  expect((await good).status).toBe(200);
  await Promise.all(flood);
});

it('a 429 of the introspection endpoint is no outage: 429 with what is left of its Retry-After, and known tokens are 200', async () => {
  const through = introspectingGate();
  await through.get('good').expect(200);
  through.reached.length = 0;
  const headers = { 'Retry-After': '50' };
  through.endpoint.down = new Response(`${SECRET} ${OPAQUE}`, { status: 429, headers });
  expectRefusal(await through.get(OPAQUE), 'too_many_unknown_keys', through, { retryAfter: 50 });
  await through.time.advance(20_000);
  expectRefusal(await through.get('another'), 'too_many_unknown_keys', through, { retryAfter: 30 });
  expect(through.endpoint.sent).toHaveLength(2);
  await through.get('good').expect(200);
  through.endpoint.down = undefined;
  await through.time.advance(30_000);
  expect((await through.get('another')).body.code).toBe('inactive');
});

/** A good token whose header says alg none. */
const UNSIGNED = token({ header: { alg: 'none' } }).replace(/[^.]+$/, '');

describe('a token that could be a JWS', () => {
  it.each<[string, string, Reason]>([
    ['no JWT', 'a.b.c', 'malformed_token'],
    ['an unsigned one', UNSIGNED, 'malformed_token'],
    ['characters beyond base64url', `${token()}==`, 'malformed_token'],
    ['another alphabet', token().replace(/^./, '+'), 'malformed_token'],
    ['an ID token', token({ header: { typ: 'JWT' } }), 'wrong_type'],
    ['an expired one', token({ claims: { exp: 1 } }), 'expired'],
    ['a dot at the end', `${token()}.`, 'malformed_token'],
    ['two dots at the end', `${token()}..`, 'malformed_token'],
    ['a dot before it', `.${token()}`, 'malformed_token'],
    ['a dot before and after it', `.${token()}.`, 'malformed_token'],
    ['two dots between its parts', token().replace('.', '..'), 'malformed_token'],
    ['a fourth part', `${token()}.x`, 'malformed_token'],
    ['a part before it', `x.${token()}`, 'malformed_token'],
    ['a fourth part, and a character that decoders skip', `~${token()}.x`, 'malformed_token'],
    ['three parts that are no JWT, and a dot', 'a.b.c.', 'malformed_token'],
    ['an unsigned one with a dot more', `${UNSIGNED}.`, 'malformed_token'],
  ])('is never decided by introspection: %s', async (_what, raw, reason) => {
    const through = introspectingGate();
    through.endpoint.tokens.set(raw, active());
    expectRefusal(await through.get(raw), reason, through);
    expect(through.endpoint.sent).toEqual([]);
  });

  it.each([
    ['one part', OPAQUE.replaceAll('.', '')],
    ['two parts', 'ory_at_mF9.B5f41JqM'],
    ['four parts that are no JSON', OPAQUE],
    ['five parts, as a JWE has them', encrypted('RSA-OAEP')],
    ['an empty part, as a JWE with a shared key has it', encrypted('dir')],
    ['thousands of parts that begin like JSON', Array(2_000).fill('eyJhIjox').join('.').slice(0, 8_000)],
    ['parts of which only the fourth is a header', ['YQ', 'YQ', 'YQ', token().split('.')[0]].join('.')],
    ['parts that are JSON, but no objects', Array(4).fill('MTIzNDU2Nzg5MDEyMzQ1Ng').join('.')],
  ])('is none of these: the issuer is asked about a token of %s', async (_what, raw) => {
    const through = introspectingGate();
    through.endpoint.tokens.set(raw, active());
    await through.get(raw).expect(200);
    expect(through.endpoint.sent.map(({ token: asked }) => asked)).toEqual([raw]);
  });
});

describe('introspection and the rest of a gate', () => {
  it('explains each check of an opaque token', async () => {
    const { gate, endpoint } = introspectingGate();
    const { accepted, checks } = await explain('good', { gate, scopes });
    const names = ['structure', 'introspection', 'claims', 'generation', 'scope'];
    expect([accepted, checks]).toEqual([true, names.map((check) => ({ check, outcome: 'passed' }))]);
    const failedCheck = async (raw: string): Promise<unknown> =>
      (await explain(raw, { gate, scopes: ['x'] })).checks.find(({ outcome }) => outcome === 'failed')?.check;
    endpoint.tokens.set('typ', active({ typ: 'ID' }));
    endpoint.tokens.set('iss', active({ iss: 'x' }));
    endpoint.tokens.set('old', active({ generation: 1 }));
    const failed = [];
    for (const raw of ['unknown', 'typ', 'iss', 'old', 'good', 'x'.repeat(16_385)]) failed.push(await failedCheck(raw));
    expect(failed).toEqual(['introspection', 'claims', 'claims', 'generation', 'scope', 'structure']);
  });

  it('asks only the issuer that has the option, and only one may', async () => {
    const opaque = { url: ENDPOINT, clientId: 'api', clientSecret: SECRET };
    const one = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), opaque };
    const other = { ...one, issuer: 'https://other.test' };
    const through = introspectingGate({ issuers: [{ ...other, opaque: undefined }, one] });
    expect((await through.get('good').expect(200)).body.auth.issuer).toBe(ISSUER);
    const message = 'authenticate(): option "opaque" is accepted for one of the "issuers" only';
    expect(() => gateApp({ issuers: [other, one] })).toThrow(new TypeError(message));
  });

  it('needs no keys where an issuer has only opaque tokens', async () => {
    const through = introspectingGate({ keys: [] });
    await through.gate.ready();
    expect(through.gate.status().ready).toBe(true);
    await through.get('good').expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(token()), 'unknown_key', through);
    expect(() => introspectingGate({ keys: [], opaque: undefined })).toThrow('at least one key');
  });

  it('gives no advice that an opaque token be a JWT', async () => {
    const through = introspectingGate();
    through.endpoint.tokens.set(OPAQUE, active({ aud: 'https://other.test' }));
    await through.get(OPAQUE).expect(401);
    expect(through.log.at('warn')).toEqual([]);
  });

  it('hands the claims over as they came, frozen', async () => {
    const through = introspectingGate();
    through.endpoint.tokens.set(OPAQUE, new Response(JSON.stringify(active()).replace('{', '{"__proto__":{"a":1},')));
    const { auth } = await explain(OPAQUE, { gate: through.gate });
    expect(Object.keys(auth?.claims ?? {})[0]).toBe('__proto__');
    expect(Object.isFrozen(auth?.claims)).toBe(true);
  });
});
