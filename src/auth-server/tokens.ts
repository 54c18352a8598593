import { createPublicKey, randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { Clock } from '../core/clock';
import { publishedKeys } from './keys';
import { signedToken, TOKEN_TYPE } from './signed-token';
import type { ClientRow, State } from './state';

/** Answer of the token endpoint (RFC 6749 section 5.1). */
export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  /** Seconds. */
  readonly expires_in: number;
  /** What was granted, separated by spaces. */
  readonly scope: string;
}

/** Claims of an access token (RFC 9068 section 2.2), with the generation of its client credential. */
export interface AccessTokenClaims {
  readonly iss: string;
  readonly aud: string;
  readonly sub: string;
  readonly client_id: string;
  readonly scope: string;
  readonly iat: number;
  readonly exp: number;
  readonly jti: string;
  readonly generation: number;
}

/** How tokens are made. */
export interface TokenOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly lifetimeSeconds: number;
  readonly clock: Clock;
  readonly state: () => State;
}

/** Makes and reads access tokens. */
export interface Tokens {
  /** Signs a token for exactly this row: its generation is the one that the secret was checked against. */
  issue(client: ClientRow, scopes: readonly string[]): TokenAnswer;
  /** The scopes of the last token that the client was granted since the start. */
  lastGranted(clientId: string): readonly string[] | undefined;
  /** Forgets a deleted client. */
  forget(clientId: string): void;
  /** The claims of a token that is good at this moment; else `undefined`. */
  read(token: string): AccessTokenClaims | undefined;
}

/** Makes what issues the tokens of one token server. */
export function createTokens({ issuer, audience, lifetimeSeconds, clock, state }: TokenOptions): Tokens {
  const granted = new Map<string, readonly string[]>();

  return {
    issue(client, scopes) {
      const { signing } = state().keys;
      const iat = Math.floor(clock() / 1000);
      const claims: AccessTokenClaims = {
        iss: issuer,
        aud: audience,
        sub: client.clientId,
        client_id: client.clientId,
        scope: scopes.join(' '),
        iat,
        exp: iat + lifetimeSeconds,
        jti: randomUUID(),
        generation: client.generation,
      };
      granted.set(client.clientId, scopes);
      return {
        access_token: signedToken(signing, claims),
        token_type: 'Bearer',
        expires_in: lifetimeSeconds,
        scope: claims.scope,
      };
    },
    lastGranted: (clientId) => granted.get(clientId),
    forget: (clientId) => void granted.delete(clientId),
    read(token) {
      const claims = verify(token);
      const client = claims && state().clients.get(claims.client_id);
      return client && !client.disabled && client.generation === claims.generation ? claims : undefined;
    },
  };

  /** Whatever verifies here was signed here: the shape of its claims needs no further look. */
  function verify(token: string): AccessTokenClaims | undefined {
    const nowMs = clock();
    try {
      const header = jwt.decode(token, { complete: true })?.header;
      const jwk = publishedKeys(state().keys, nowMs).find(({ kid }) => kid === header?.kid);
      if (!jwk || header?.typ !== TOKEN_TYPE) return undefined;
      const key = createPublicKey({ key: { ...jwk }, format: 'jwk' });
      const checks = { algorithms: [jwk.alg], issuer, audience, clockTimestamp: Math.floor(nowMs / 1000) };
      return jwt.verify(token, key, checks) as AccessTokenClaims & jwt.JwtPayload;
    } catch {
      return undefined;
    }
  }
}
