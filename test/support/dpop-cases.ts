import { sign as signBytes } from 'node:crypto';
import { boundToken, callerKey, publicJwk } from './dpop';
import type { ProofParts } from './dpop';
import { hmacSigner, signer } from './issuer';
import { testKey } from './keys';

/** Proofs for GET `/v1/orders` that a gate accepts, at the time `now` in seconds. */
export function goodProofs(baseUrl: string, now: number): [what: string, parts: ProofParts][] {
  return [
    ['htu in another spelling of the same URL', { url: baseUrl.toUpperCase() + '/v1/%6frders' }],
    ['htu with query and fragment', { url: `${baseUrl}/v1/orders?since=1#x` }],
    ['typ in another case', { header: { typ: 'DPoP+JWT' } }],
    ['claims that are not known', { claims: { aud: 'x', sub: 'x', extra: { a: 1 } } }],
    ['exp and nbf', { claims: { exp: now + 300, nbf: now - 10 } }],
    ['an exp that has just passed', { claims: { exp: now - 9.999 } }],
    ['an nbf that is about to come', { claims: { nbf: now + 10 } }],
    ['the oldest iat', { claims: { iat: now - 69.999 } }],
    ['the latest iat', { claims: { iat: now + 10 } }],
    ['a jti of 512 characters', { claims: { jti: 'x'.repeat(512) } }],
  ];
}

/** Proofs that a gate refuses, and what operators are told. */
export function badProofs(baseUrl: string, now: number): [what: string, parts: ProofParts, detail: string][] {
  const notHtu = `htu is not ${baseUrl}/v1/orders`;
  return [
    ['another method', { method: 'POST' }, 'htm is not the method of the request'],
    ['a method in another case', { method: 'get' }, 'htm is not the method of the request'],
    ['another path', { url: `${baseUrl}/v1/refunds` }, notHtu],
    ['another origin', { url: 'https://other.test/v1/orders' }, notHtu],
    [
      'another scheme',
      { url: baseUrl.replace(/^https?/, (scheme) => (scheme === 'https' ? 'http' : 'https')) + '/v1/orders' },
      notHtu,
    ],
    ['a path without an origin', { url: '/v1/orders' }, notHtu],
    ['a slash more', { url: `${baseUrl}/v1/orders/` }, notHtu],
    [
      'another access token',
      { accessToken: boundToken(callerKey(), { jti: 'another' }) },
      'ath is not the hash of the access token',
    ],
    ['no ath', { claims: { ath: undefined } }, 'ath is missing or not a string'],
    ['an ath that is not a string', { claims: { ath: 1 } }, 'ath is missing or not a string'],
    ['no htm', { claims: { htm: undefined } }, 'htm is missing or not a string'],
    ['an htm that is a list', { claims: { htm: ['GET'] } }, 'htm is missing or not a string'],
    ['no htu', { claims: { htu: undefined } }, 'htu is missing or not a string'],
    ['no jti', { claims: { jti: undefined } }, 'jti is missing or not a string'],
    ['an empty jti', { claims: { jti: '' } }, 'jti is missing or not a string'],
    ['a jti of 513 characters', { claims: { jti: 'x'.repeat(513) } }, 'jti is longer than 512 characters'],
    ['no iat', { claims: { iat: undefined } }, 'iat is not a number'],
    ['an iat that is a string', { claims: { iat: String(now) } }, 'iat is not a number'],
    ['an iat that is too old', { claims: { iat: now - 70 } }, 'iat is too old'],
    ['an iat to come', { claims: { iat: now + 10.001 } }, 'iat is in the future'],
    ['a nonce that is not a string', { claims: { nonce: 1 } }, 'nonce is missing or not a string'],
    ['an exp that has passed', { claims: { exp: now - 10 } }, 'exp has passed'],
    ['an nbf to come', { claims: { nbf: now + 10.001 } }, 'nbf is in the future'],
    ['an exp that is a string', { claims: { exp: `${now + 60}` } }, 'exp is not a number'],
    ['no typ', { header: { typ: undefined } }, 'header has no typ, expected dpop+jwt'],
    ['the typ of an access token', { header: { typ: 'at+jwt' } }, 'header typ is "at+jwt", expected dpop+jwt'],
    ['crit', { header: { crit: ['x'] } }, 'unsupported_critical_header'],
    ['alg none', { header: { alg: 'none' }, sign: () => Buffer.from('x') }, 'alg is "none"'],
    [
      'an HMAC with the public key',
      { header: { alg: 'HS256' }, sign: hmacSigner(JSON.stringify(publicJwk(callerKey()))) },
      'alg is "HS256", which needs a shared secret: have the issuer sign with a key pair',
    ],
    ['an algorithm that does not fit the key', { header: { alg: 'ES384' } }, 'alg does not fit the key'],
    ['no jwk', { header: { jwk: undefined } }, 'jwk: it is not an object'],
    ['a jwk that is a string', { header: { jwk: 'x' } }, 'jwk: it is not an object'],
    [
      'a private key',
      { header: { jwk: callerKey().privateKey.export({ format: 'jwk' }) } },
      'jwk: it is a private key',
    ],
    ['a secret key', { header: { jwk: { kty: 'oct', k: 'AAAA' } } }, 'jwk: its kty must be RSA, EC or OKP'],
    [
      'a key off its curve',
      { header: { jwk: { ...publicJwk(callerKey()), x: 'AAAA' } } },
      'jwk: its key material is broken',
    ],
    [
      'the key of the caller, signed with another',
      { sign: signer('ES256', testKey('ES256', 'another').privateKey) },
      'bad_signature',
    ],
    ['a DER signature', { sign: (input) => signBytes('sha256', input, callerKey().privateKey) }, 'bad_signature'],
  ];
}
