import { createPublicKey } from 'node:crypto';
import { base64url, signer, token } from '../../../support/issuer';
import type { TokenParts } from '../../../support/issuer';
import { newKey, testKey } from '../../../support/keys';
import type { TestKey } from '../../../support/keys';

export const ES = testKey('ES256');
export const RS = testKey('RS256');
/** The same RSA key, published without `alg`. */
export const ANY_RSA: TestKey = { ...RS, kid: 'any-rsa', jwk: withoutAlg(RS, 'any-rsa') };
export const PS = testKey('PS256');
export const ES384 = testKey('ES384');
export const ED = testKey('EdDSA');
/** Two published keys with one kid and one algorithm. */
export const TWIN: TestKey = { ...RS, kid: 'twin', jwk: withoutAlg(RS, 'twin') };
const OTHER_TWIN: TestKey = { ...PS, kid: 'twin', jwk: withoutAlg(PS, 'twin') };
/** Keys of an attacker, not published anywhere. */
export const STRANGER = newKey('ES256', ES.kid);
export const STRANGER_RSA = newKey('RS256', RS.kid);

/** What the issuer publishes. */
export const PUBLISHED = [ES, RS, ANY_RSA, PS, ES384, ED, TWIN, OTHER_TWIN].map(({ jwk }) => jwk);

/** A good token, for the rows that are about the rest of the request. */
export const GOOD = token();

/** Signs raw header and payload texts unchanged. */
export function signed(header: string, payload: string, key: TestKey = ES): string {
  return token({ key, rawHeader: header, payload });
}

/** Signs any two parts in any encoding. */
export function signParts(header: string, payload: string, key: TestKey = ES): string {
  const input = `${header}.${payload}`;
  return `${input}.${signer(key.alg, key.privateKey)(Buffer.from(input)).toString('base64url')}`;
}

/** A good token with other parts. */
export function withParts(
  change: { header?: string; payload?: string; signature?: string | Buffer },
  of = GOOD,
): string {
  const [header = '', payload = '', signature = ''] = of.split('.');
  const last = Buffer.isBuffer(change.signature) ? base64url(change.signature) : change.signature;
  return [change.header ?? header, change.payload ?? payload, last ?? signature].join('.');
}

/** A token signed with a key that no key set contains. */
export function forged(parts: TokenParts = {}): string {
  return token({ key: STRANGER, ...parts });
}

export function pem(key: TestKey, type: 'spki' | 'pkcs1' = 'spki'): string {
  return createPublicKey(key.privateKey).export({ format: 'pem', type }).toString();
}

export function der(key: TestKey): Buffer {
  return createPublicKey(key.privateKey).export({ format: 'der', type: 'spki' });
}

/** The same bytes in another spelling: the spare low bits of the last character set. */
export function notCanonical(part: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return part.slice(0, -1) + alphabet[alphabet.indexOf(part.at(-1) ?? '') + 1];
}

function withoutAlg({ jwk }: TestKey, kid: string): TestKey['jwk'] {
  const { alg: _alg, ...rest } = jwk;
  return { ...rest, kid };
}
