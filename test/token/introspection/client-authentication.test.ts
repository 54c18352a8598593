import { generateKeyPairSync, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { introspectingGate, active, ENDPOINT, SECRET } from '../../support/introspection';
import type { IntrospectingGate } from '../../support/introspection';
import { ISSUER, NOW } from '../../support/issuer';

const pairs = {
  ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ed: generateKeyPairSync('ed25519'),
};
const jwkOf = (key: KeyObject, more: object = {}): object => ({ ...key.export({ format: 'jwk' }), ...more });
const client = { url: ENDPOINT, clientId: 'api:1' };

/** What the endpoint got: the form, and the Authorization header. */
function sentBy({ endpoint }: IntrospectingGate): { form: Record<string, string>; authorization: unknown }[] {
  return endpoint.sent.map(({ init }) => ({
    form: Object.fromEntries(new URLSearchParams(init.body as string)),
    authorization: (init.headers as Record<string, string>)['authorization'],
  }));
}

function decode(part = ''): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
}

describe('introspection: private_key_jwt (RFC 7523)', () => {
  it.each<[string, keyof typeof pairs, string | undefined]>([
    ['ES256', 'ec', undefined],
    ['ES384', 'p384', undefined],
    ['RS256', 'rsa', undefined],
    ['PS256', 'rsa', 'PS256'],
    ['EdDSA', 'ed', undefined],
    ['Ed25519', 'ed', 'Ed25519'],
  ])('signs an assertion with %s', async (algorithm, pair, alg) => {
    const privateKey = jwkOf(pairs[pair].privateKey, { kid: 'k1', alg });
    const through = introspectingGate({ introspection: { ...client, privateKey } });
    through.endpoint.tokens.set('good', active());
    await through.get('good').expect(200);
    const [{ form, authorization } = { form: {}, authorization: '' }] = sentBy(through);
    expect(authorization).toBeUndefined();
    expect(form).toEqual({
      token: 'good',
      token_type_hint: 'access_token',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: expect.any(String) as string,
    });
    const [header = '', claims = '', signature = ''] = (form['client_assertion'] ?? '').split('.');
    expect(decode(header)).toEqual({ alg: algorithm, typ: 'JWT', kid: 'k1' });
    expect(decode(claims)).toEqual({
      ...{ iss: 'api:1', sub: 'api:1', aud: ISSUER, iat: NOW, exp: NOW + 60 },
      jti: expect.stringMatching(/^[\da-f-]{36}$/) as string,
    });
    const hash = pair === 'ed' ? null : `sha${algorithm.slice(2)}`;
    const key = {
      key: pairs[pair].publicKey,
      dsaEncoding: 'ieee-p1363',
      ...(alg === 'PS256' && { padding: 6 }),
    } as const;
    expect(verify(hash, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(true);
  });

  it('makes a new assertion for each call', async () => {
    const through = introspectingGate({ introspection: { ...client, privateKey: jwkOf(pairs.ec.privateKey) } });
    await through.get('a').expect(401);
    await through.get('b').expect(401);
    const ids = sentBy(through).map(({ form }) => decode(form['client_assertion']?.split('.')[1])['jti']);
    expect(new Set(ids).size).toBe(2);
  });
});

describe('introspection: mutual TLS (RFC 8705)', () => {
  it('asks by the given fetch, with the client id and no secret, at the endpoint for certificates', async () => {
    const urls: string[] = [];
    const forms: unknown[] = [];
    const alias = 'https://mtls.login.test/introspect';
    const fetch = (url: string, init: RequestInit): Promise<Response> => {
      urls.push(url);
      if (init.method === 'POST')
        forms.push(Object.fromEntries(new URLSearchParams(init.body as string)), init.headers);
      const metadata = {
        issuer: ISSUER,
        introspection_endpoint: ENDPOINT,
        mtls_endpoint_aliases: { introspection_endpoint: alias },
      };
      return Promise.resolve(Response.json(init.method === 'POST' ? active() : metadata));
    };
    const through = introspectingGate({ introspection: { clientId: 'api:1', fetch } });
    await through.get('good').expect(200);
    expect(urls).toEqual([`${ISSUER}/.well-known/openid-configuration`, alias]);
    expect(forms).toEqual([
      { token: 'good', token_type_hint: 'access_token', client_id: 'api:1' },
      { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    ]);
    expect(through.endpoint.sent).toEqual([]);
  });
});

describe('introspection: the credential', () => {
  const pem = pairs.ec.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const key = 'option "introspection.privateKey" must be a private JWK for RS, PS, ES or EdDSA signatures';
  it.each<[string, object, string]>([
    ['no credential', {}, 'option "introspection.clientSecret" must be a non-empty string'],
    ['an empty secret', { clientSecret: '' }, 'option "introspection.clientSecret" must be a non-empty string'],
    ['a secret that is null', { clientSecret: null }, 'option "introspection.clientSecret" must be a non-empty string'],
    ['a key that is null', { privateKey: null }, key],
    ['a key as PEM', { privateKey: pem }, key],
    ['a public key', { privateKey: jwkOf(pairs.ec.publicKey) }, key],
    ['an algorithm of another key', { privateKey: jwkOf(pairs.ec.privateKey, { alg: 'RS256' }) }, key],
    ['an HMAC', { privateKey: { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' } }, key],
    ['a kid that is a number', { privateKey: jwkOf(pairs.ec.privateKey, { kid: 1 }) }, key],
    ['a fetch that is null', { fetch: null }, 'option "introspection.fetch" must be a function, got null'],
    [
      'a secret and a key',
      { clientSecret: SECRET, privateKey: jwkOf(pairs.ec.privateKey) },
      'give "introspection.clientSecret" or "introspection.privateKey", not both',
    ],
    [
      'a key and a certificate',
      { privateKey: jwkOf(pairs.ec.privateKey), fetch: globalThis.fetch },
      'give "introspection.privateKey" or "introspection.fetch", not both',
    ],
  ])('is refused at construction, and not quoted: %s', (_what, credential, message) => {
    expect(() => introspectingGate({ introspection: { ...client, ...credential } as never })).toThrow(
      new TypeError(`authenticate(): ${message}`),
    );
  });
});
