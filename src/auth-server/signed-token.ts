import { sign } from 'node:crypto';
import { privateKeyOf } from './keys';
import type { SigningKey } from './state';

/** `typ` of the tokens (RFC 9068 section 2.1). */
export const TOKEN_TYPE = 'at+jwt';

/** Signs claims as a JWT in compact form (RFC 7515 section 3.1). */
type Signer = (claims: object) => string;

const signers = new WeakMap<SigningKey, Signer>();

/** An access token with these claims. */
export function signedToken(key: SigningKey, claims: object): string {
  const known = signers.get(key);
  if (known) return known(claims);
  const signer = createSigner(key);
  signers.set(key, signer);
  return signer(claims);
}

function createSigner(key: SigningKey): Signer {
  const header = encode({ alg: key.alg, typ: TOKEN_TYPE, kid: key.kid });
  // RFC 7518 section 3.4: r and s side by side, not DER; for RSA it means nothing.
  const privateKey = { key: privateKeyOf(key), dsaEncoding: 'ieee-p1363' } as const;
  return function signClaims(claims) {
    const signingInput = `${header}.${encode(claims)}`;
    return `${signingInput}.${sign('sha256', Buffer.from(signingInput), privateKey).toString('base64url')}`;
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
