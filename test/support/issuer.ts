import { constants, createHmac, sign as signBytes } from 'node:crypto';
import type { KeyObject, SignKeyObjectInput } from 'node:crypto';
import { testKey } from './keys';
import type { TestKey } from './keys';

/** The fixed time of the tests' clocks: a day in 2027. */
export const NOW_MS = 1_800_000_000_000;
export const NOW = NOW_MS / 1000;
export const ISSUER = 'https://login.test';
export const AUDIENCE = 'https://api.test';
export const GENERATION = NOW_MS - 60_000;

export type Members = Readonly<Record<string, unknown>>;

/** Parts of a token. Members of `header` and `claims` override good ones; `undefined` removes one. */
export interface TokenParts {
  readonly key?: TestKey;
  readonly header?: Members;
  readonly claims?: Members;
  /** The payload as raw text or bytes, instead of `claims`. */
  readonly payload?: string | Buffer;
  /** The header as raw text or bytes, instead of `header`. */
  readonly rawHeader?: string | Buffer;
  /** Replaces the signer; receives the signing input. */
  readonly sign?: (input: Buffer) => Buffer;
}

/** The claims that RFC 9068 requires, with a generation. */
export function goodClaims(): Record<string, unknown> {
  return {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'pos-17',
    client_id: 'pos-17',
    scope: 'orders:read orders:write',
    iat: NOW - 60,
    exp: NOW + 3_540,
    jti: 'c0ffee',
    generation: GENERATION,
  };
}

/** Signs a token with node:crypto, independently of the code under test; it can also make tokens that no library would. */
export function token({ key = testKey(), header, claims, payload, rawHeader, sign }: TokenParts = {}): string {
  const goodHeader = { typ: 'at+jwt', alg: key.alg, kid: key.kid };
  const input = [
    base64url(rawHeader ?? JSON.stringify({ ...goodHeader, ...header })),
    base64url(payload ?? JSON.stringify({ ...goodClaims(), ...claims })),
  ].join('.');
  const signature = (sign ?? signer(key.alg, key.privateKey))(Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}

/** A signer as in RFC 7518 section 3 and RFC 8037. */
export function signer(alg: string, key: KeyObject): (input: Buffer) => Buffer {
  if (alg.startsWith('Ed')) return (input) => signBytes(null, input, key);
  const hash = `sha${alg.slice(2)}`;
  return (input) => signBytes(hash, input, withPadding(alg, key));
}

/** HMAC (RFC 7518 section 3.2) with any bytes as the secret. */
export function hmacSigner(secret: string | Buffer): (input: Buffer) => Buffer {
  return (input) => createHmac('sha256', secret).update(input).digest();
}

export function base64url(content: string | Buffer): string {
  return Buffer.from(content).toString('base64url');
}

function withPadding(alg: string, key: KeyObject): SignKeyObjectInput {
  if (alg.startsWith('ES')) return { key, dsaEncoding: 'ieee-p1363' };
  if (alg.startsWith('PS')) {
    return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  }
  return { key };
}
