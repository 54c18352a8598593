import { createPublicKey, randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { Clock } from '../../core/clock';
import { privateKeyOf, publishedKeys } from '../storage/keys';
import type { ClientRow, State } from '../storage/state';

/** Response of the token endpoint (RFC 6749 section 5.1). */
export interface TokenResponse {
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
  readonly tokenLifetimeSeconds: number;
  readonly clock: Clock;
  readonly state: () => State;
}

/** Makes and reads access tokens. */
export interface Tokens {
  /** Signs a token for exactly this row: its generation is the one that the secret was checked against. */
  issue(client: ClientRow, scopes: readonly string[]): TokenResponse;
  /** The scopes of the last token that the client was granted since the start. */
  lastGranted(clientId: string): readonly string[] | undefined;
  /** Forgets a deleted client. */
  forget(clientId: string): void;
  /** The claims of a token that is valid now; else `undefined`. */
  read(token: string): AccessTokenClaims | undefined;
}

/** `typ` of the tokens (RFC 9068 section 2.1). */
const TOKEN_TYPE = 'at+jwt';

/** Makes what issues and reads the tokens of one token server. */
export function createTokens({ issuer, audience, tokenLifetimeSeconds, clock, state }: TokenOptions): Tokens {
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
        exp: iat + tokenLifetimeSeconds,
        jti: randomUUID(),
        generation: client.generation,
      };
      const header = { alg: signing.alg, typ: TOKEN_TYPE, kid: signing.kid };
      granted.set(client.clientId, scopes);
      return {
        access_token: jwt.sign(claims, privateKeyOf(signing), { algorithm: signing.alg, header }),
        token_type: 'Bearer',
        expires_in: tokenLifetimeSeconds,
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

  /** A token that verifies was signed here, so its claims have the expected shape. */
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
