import { explain, requireScope } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import { gateApp } from '../../support/gate-app';
import { active, ENDPOINT, introspectingGate, SECRET } from '../../support/introspection';
import { AUDIENCE, goodClaims, ISSUER, token } from '../../support/issuer';
import { eventually } from '../../support/key-server';
import { jwks, testKey } from '../../support/keys';
import { expectNoTokenLeak, expectRefusal } from '../../support/refusals';

const OPAQUE = 'mF_9.B5f-4.1JqM.opaque-and-long';
const scopes = ['orders:read'];

describe('an introspection endpoint that cannot tell', () => {
  it.each<[string, object | Response | Error]>([
    ['is down', new Error('connect ECONNREFUSED')],
    ['fails', new Response(`token ${OPAQUE}`, { status: 500 })],
    ['refuses our credentials', new Response(SECRET, { status: 401 })],
    ['responds with something else', new Response('true')],
    ['says no word about active', { client_id: 'pos-17' }],
    ['says active: "true"', active({ active: 'true' })],
  ])('is an outage, 503, where it %s: never a bad token', async (_what, answer) => {
    const through = introspectingGate();
    through.endpoint.down = answer;
    const response = await through.get(OPAQUE);
    expectRefusal(response, 'introspection_unavailable', through);
    const output = JSON.stringify([response.headers, response.text, through.log.entries]);
    expect(output).not.toContain('a secret');
    expect(output).not.toContain('ECONNREFUSED');
    await through.get(token()).expect(200);
  });
});

/** A JWE (RFC 7516 section 7.1) with a header and four parts of made-up bytes; with `dir` the second is empty. */
function encrypted(alg: string): string {
  const header = Buffer.from(JSON.stringify({ alg, enc: 'A256GCM', typ: 'at+jwt' })).toString('base64url');
  return [header, alg === 'dir' ? '' : 'a2V5', 'aXY', 'Y2lwaGVydGV4dA', 'dGFn'].join('.');
}

describe('callers that hurt others', () => {
  it('do not delay the token of another site', async () => {
    const through = introspectingGate({
      routes(app, reach) {
        app.set('trust proxy', true);
        app.get('/v1/orders', requireScope('orders:read'), reach);
      },
    });
    const from = (address: string, raw: string) => through.get(raw).set('X-Forwarded-For', address).then();
    through.endpoint.tokens.set('good', active());
    through.endpoint.hold();
    const flood = [];
    for (let index = 0; index < 20; index++) flood.push(from('198.51.100.7', `made-up-${index}`));
    await eventually(() => through.presented.length === 20);
    const good = from('203.0.113.1', 'good');
    await eventually(() => through.presented.length === 21);
    const asked = (): readonly unknown[] => through.endpoint.sent.map(({ token: raw }) => raw);
    await eventually(() => asked().length === 17);
    expect(asked()[16]).toBe('good');
    through.endpoint.release();
    expect((await good).status).toBe(200);
    await Promise.all(flood);
  });
});

describe('a token that could be a JWS', () => {
  it.each<[string, string, Reason]>([
    ['no JWT', 'a.b.c', 'malformed_token'],
    ['an unsigned one', token({ header: { alg: 'none' } }).replace(/[^.]+$/, ''), 'malformed_token'],
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
    [
      'an unsigned one with a dot more',
      `${token({ header: { alg: 'none' } }).replace(/[^.]+$/, '')}.`,
      'malformed_token',
    ],
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
    [
      'many short parts',
      Array.from({ length: 2_000 }, () => 'eyJhIjox')
        .join('.')
        .slice(0, 8_000),
    ],
    ['parts that are JSON, but no objects', Array.from({ length: 4 }, () => 'MTIzNDU2Nzg5MDEyMzQ1Ng').join('.')],
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
    const common = { audience: AUDIENCE, keys: jwks(testKey()) };
    const opaque = { url: ENDPOINT, clientId: 'api', clientSecret: SECRET };
    const other = { ...common, issuer: 'https://other.test' };
    const through = introspectingGate({
      issuers: [other, { ...common, issuer: ISSUER, opaque }],
    });
    expect((await through.get('good').expect(200)).body.auth.issuer).toBe(ISSUER);
    const both = {
      issuers: [
        { ...other, opaque },
        { ...common, issuer: ISSUER, opaque },
      ],
    };
    expect(() => gateApp(both)).toThrow(
      new TypeError('authenticate(): option "opaque" is accepted for one of the "issuers" only'),
    );
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

  it('keeps tokens and secret out of log and responses', async () => {
    const through = introspectingGate();
    through.endpoint.down = new Response('', { status: 403 });
    const response = await through.get(OPAQUE.padEnd(64, 'x'));
    expectNoTokenLeak(response, through);
    const secrets = [SECRET, Buffer.from(SECRET).toString('base64'), 'a+secret'];
    const output = JSON.stringify([response.text, through.log.entries, through.gate.status()]);
    expect(secrets.filter((secret) => output.includes(secret))).toEqual([]);
  });

  it('ends with the gate', async () => {
    const through = introspectingGate();
    await through.get('good').expect(200);
    await through.gate.close();
    await through.get('good').expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(OPAQUE), 'introspection_unavailable', through);
  });

  it('hands the claims over as they came, frozen', async () => {
    const through = introspectingGate();
    through.endpoint.tokens.set(OPAQUE, new Response(JSON.stringify(active()).replace('{', '{"__proto__":{"a":1},')));
    const { auth } = await explain(OPAQUE, { gate: through.gate });
    expect(Object.keys(auth?.claims ?? {})[0]).toBe('__proto__');
    expect([Object.isFrozen(auth?.claims), goodClaims()]).toEqual([true, expect.objectContaining({ iss: ISSUER })]);
  });
});
