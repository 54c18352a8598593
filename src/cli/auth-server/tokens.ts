import { createPrivateKey, createPublicKey, generateKeyPair, hash, randomUUID } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import jwt from 'jsonwebtoken';
import { attempt } from 'tillgate/internal';
import type { Generations } from './generations';
import type { tokenLimit } from './guards';
import type { AuthServerSettings } from './options';
import type { ClientRow, State, Store, StoredKey } from './store';

/** What the endpoints of one token server work on. */
export interface Context {
  readonly settings: AuthServerSettings;
  readonly store: Store;
  readonly generations: Generations;
  readonly limit: ReturnType<typeof tokenLimit>;
  /** The last token of each client since the start. */
  readonly lastIssued: Map<string, { readonly scopes: readonly string[]; readonly expiresAtMs: number }>;
}

/** The clock of a resource server may be slow by this much. */
const SKEW_MS = 60_000;

const generate = promisify(generateKeyPair);

/** Makes an RSA key of 2048 bits (RFC 7518 section 3.3). Its `kid` is its thumbprint (RFC 7638 section 3.2). */
export async function newSigningKey(): Promise<StoredKey> {
  const { privateKey } = await generate('rsa', { modulusLength: 2048 });
  const jwk = privateKey.export({ format: 'jwk' });
  const kid = hash('sha256', JSON.stringify({ e: jwk.e, kty: jwk.kty, n: jwk.n }), 'base64url');
  return { kid, alg: 'RS256', jwk, publishedUntilMs: Number.MAX_SAFE_INTEGER };
}

/** Signs with a new key once it is on disk; earlier keys stay published until their last token has expired. */
export async function rotateKeys({ store, settings }: Context): Promise<void> {
  const signing = await newSigningKey();
  const publishedForMs = settings.tokenLifetimeSeconds * 1000 + SKEW_MS;
  return store.change(({ keys }, nowMs) => {
    const retired = { ...keys.signing, jwk: toPublic(keys.signing.jwk), publishedUntilMs: nowMs + publishedForMs };
    return { keys: { signing, retired: [retired, ...keys.retired].filter(isPublishedAt(nowMs)) }, value: undefined };
  });
}

/** The entries of the key set (RFC 7517 section 4) at a time: of retired keys, those whose tokens may still be valid. */
export function publishedKeys({ signing, retired }: State['keys'], nowMs: number): JsonWebKey[] {
  const published = [signing, ...retired].filter(isPublishedAt(nowMs));
  return published.map(({ kid, alg, jwk }) => ({ ...toPublic(jwk), use: 'sig', alg, kid }));
}

const privateKeys = new WeakMap<StoredKey, KeyObject>();

/** The private key, imported once: that takes as long as a signature. */
function privateKeyOf(key: StoredKey): KeyObject {
  const known = privateKeys.get(key) ?? createPrivateKey({ key: key.jwk, format: 'jwk' });
  privateKeys.set(key, known);
  return known;
}

function isPublishedAt(nowMs: number): (key: StoredKey) => boolean {
  return ({ publishedUntilMs }) => nowMs < publishedUntilMs;
}

function toPublic(jwk: JsonWebKey): JsonWebKey {
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'jwk' });
}

/** Claims of an access token (RFC 9068 section 2.2), with the generation of its client credential. */
interface AccessTokenClaims extends jwt.JwtPayload {
  readonly client_id: string;
  readonly scope: string;
  readonly generation: number;
}

/** `typ` of the tokens (RFC 9068 section 2.1). */
const TOKEN_TYPE = 'at+jwt';

/** Signs a token for exactly this row, which the secret was checked against; returns the response (RFC 6749 section 5.1). */
export function issueToken(context: Context, client: ClientRow, scopes: readonly string[]): object {
  const { issuer, audience, tokenLifetimeSeconds, clock } = context.settings;
  const { signing } = context.store.state.keys;
  const { clientId, generation } = client;
  const scope = scopes.join(' ');
  const iat = Math.floor(clock() / 1000);
  const claims = { client_id: clientId, scope, generation, iat };
  context.lastIssued.set(clientId, { scopes, expiresAtMs: (iat + tokenLifetimeSeconds) * 1000 });
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
export function issueSuccessor(context: Context, client: ClientRow): object {
  const { scopes = [] } = context.lastIssued.get(client.clientId) ?? {};
  const kept = scopes.filter((scope) => client.scopes.includes(scope));
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
  return attempt(() => {
    const header = jwt.decode(token, { complete: true })?.header;
    const key = publishedKeys(store.state.keys, nowMs).find(({ kid }) => kid === header?.kid);
    if (!key || header?.typ !== TOKEN_TYPE) return undefined;
    const algorithms = [key['alg'] as jwt.Algorithm];
    const checks = { algorithms, issuer, audience, clockTimestamp: Math.floor(nowMs / 1000) };
    return jwt.verify(token, createPublicKey({ key, format: 'jwk' }), checks) as AccessTokenClaims;
  });
}
