import { verify as verifyBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { AuthError } from '../core/auth-error';
import type { Algorithm } from './algorithms';
import type { UnverifiedToken } from './jws';

/**
 * Verifies the signature with a cached key object (RFC 7515 section 5.2). Times are not looked at here: claims are
 * checked after the signature, by rules of our own.
 *
 * @throws AuthError `bad_signature`
 */
export function verifySignature(token: UnverifiedToken, key: KeyObject, algorithm: Algorithm): void {
  try {
    if (algorithm === 'EdDSA') {
      // jsonwebtoken has no EdDSA (RFC 8037 section 3.1).
      if (!verifyBytes(null, Buffer.from(token.signingInput), key, token.signature))
        throw new Error('invalid signature');
      return;
    }
    jwt.verify(token.raw, key, { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true });
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
}
