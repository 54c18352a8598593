import { createPublicKey, randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { Context } from '../context';
import { privateKeyOf, publishedKeys } from '../storage/keys';
import type { ClientRow, SigningAlgorithm } from '../storage/state';

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
export interface AccessTokenClaims extends jwt.JwtPayload {
  readonly client_id: string;
  readonly scope: string;
  readonly generation: number;
}

/** `typ` of the tokens (RFC 9068 section 2.1). */
const TOKEN_TYPE = 'at+jwt';

/** Signs a token for exactly this row: its generation is the one that the secret was checked against. */
export function issueToken(context: Context, client: ClientRow, scopes: readonly string[]): TokenResponse {
  const { issuer, audience, tokenLifetimeSeconds, clock } = context.settings;
  const { signing } = context.store.state.keys;
  const { clientId, generation } = client;
  const scope = scopes.join(' ');
  const claims = { client_id: clientId, scope, generation, iat: Math.floor(clock() / 1000) };
  context.lastGranted.set(clientId, scopes);
  const accessToken = jwt.sign(claims, privateKeyOf(signing), {
    header: { alg: signing.alg, typ: TOKEN_TYPE },
    algorithm: signing.alg,
    keyid: signing.kid,
    issuer,
    audience,
    subject: clientId,
    jwtid: randomUUID(),
    expiresIn: tokenLifetimeSeconds,
  });
  return { access_token: accessToken, token_type: 'Bearer', expires_in: tokenLifetimeSeconds, scope };
}

/** Signs a token with the scopes of the last one, as far as they are still registered; without one, with all. */
export function issueSuccessor(context: Context, client: ClientRow): TokenResponse {
  const last = context.lastGranted.get(client.clientId) ?? [];
  const kept = last.filter((scope) => client.scopes.includes(scope));
  return issueToken(context, client, kept.length > 0 ? kept : client.scopes);
}

/** The claims of a token that is valid now; else `undefined`. */
export function readToken(context: Context, token: string): AccessTokenClaims | undefined {
  const claims = verify(context, token);
  const client = claims && context.store.state.clients.get(claims.client_id);
  return client && !client.disabled && client.generation === claims.generation ? claims : undefined;
}

/** A token that verifies was signed here, so its claims have the expected shape. */
function verify({ settings, store }: Context, token: string): AccessTokenClaims | undefined {
  const { issuer, audience, clock } = settings;
  const nowMs = clock();
  try {
    const header = jwt.decode(token, { complete: true })?.header;
    const key = publishedKeys(store.state.keys, nowMs).find(({ kid }) => kid === header?.kid);
    if (!key || header?.typ !== TOKEN_TYPE) return undefined;
    const algorithms = [key['alg'] as SigningAlgorithm];
    const checks = { algorithms, issuer, audience, clockTimestamp: Math.floor(nowMs / 1000) };
    return jwt.verify(token, createPublicKey({ key, format: 'jwk' }), checks) as AccessTokenClaims;
  } catch {
    return undefined;
  }
}
