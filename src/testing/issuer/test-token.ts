import { constants, createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import type { KeyObject, SigningOptions } from 'node:crypto';
import { option, readOptions } from 'tillgate/internal';
import type { ALGORITHMS, Option, TableOf } from 'tillgate/internal';

/** What a key of a test issuer signs with. */
export type Algorithm = (typeof ALGORITHMS)[number];

/** The claims and the signature of one token; every default passes. */
export interface TestToken {
  /** Space-separated scopes. Default: none. */
  readonly scope?: string | undefined;
  /** Default `test-client`. */
  readonly clientId?: string | undefined;
  /** Default: the client's current generation. */
  readonly generation?: number | undefined;
  /** Lifetime in seconds. Default 300. */
  readonly lifetimeSeconds?: number | undefined;
  /** Issued an hour ago and expired half an hour ago. */
  readonly expired?: boolean | undefined;
  /** Becomes valid in half an hour (`nbf`). */
  readonly notYetValid?: boolean | undefined;
  /** Changes the client credential right after issuing, as `bump()` does; the client's other tokens are superseded too. */
  readonly superseded?: boolean | undefined;
  /** Another `iss` than the issuer's own. */
  readonly issuer?: string | undefined;
  /** Another `aud`. */
  readonly audience?: string | readonly string[] | undefined;
  /** Signed with an unpublished key, under the key id of the issuer's key. */
  readonly foreignKey?: boolean | undefined;
  /** `none`: unsigned; `HS256`: signed with an HMAC whose secret is the issuer's public key (RFC 8725 section 2.1). */
  readonly algorithm?: 'none' | 'HS256' | undefined;
  /** Claims that replace or, with `undefined`, remove the usual ones. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** Header members that replace or, with `undefined`, remove the usual ones. */
  readonly header?: Readonly<Record<string, unknown>> | undefined;
}

/** The client of tokens that name none. */
export const DEFAULT_CLIENT = 'test-client';
const HALF_AN_HOUR_SECONDS = 1_800;

/** Rows for the likeliest mistakes; claims are not checked, because tests need wrong ones. */
const TOKEN_OPTIONS = {
  scope: option('a string of space-separated scopes (claims: { scope: ... } takes anything)', (given) =>
    typeof given === 'string' ? given : undefined,
  ),
  clientId: option.string(),
  generation: anything<TestToken['generation']>(),
  lifetimeSeconds: anything<TestToken['lifetimeSeconds']>(),
  expired: option.boolean(),
  notYetValid: option.boolean(),
  superseded: option.boolean(),
  issuer: anything<TestToken['issuer']>(),
  audience: anything<TestToken['audience']>(),
  foreignKey: option.boolean(),
  algorithm: option(
    'none or HS256 (createTestIssuer({ algorithm }) chooses what good tokens are signed with)',
    (given) => (given === 'none' || given === 'HS256' ? given : undefined),
  ),
  claims: anything<TestToken['claims']>(),
  header: anything<TestToken['header']>(),
} satisfies TableOf<TestToken>;

function anything<Value>(): Option<Value | undefined> {
  return option('anything', (given) => given as Value);
}

/**
 * Builds and signs a token (RFC 9068 section 2, RFC 7515 section 7.1).
 *
 * @throws TypeError when an option is unknown or has the wrong type
 */
export function signTestToken(
  options: TestToken,
  state: {
    readonly issuer: string;
    readonly audience: string;
    readonly nowMs: number;
    readonly generationOf: (clientId: string) => number;
    /** The key whose id the header names. */
    readonly key: TestKey;
    /** A key that is not published. */
    readonly foreignKey: () => TestKey;
  },
): string {
  const token = readOptions('token', options, TOKEN_OPTIONS);
  const { key, foreignKey } = state;
  const { algorithm = key.jwk['alg'] } = token;
  const header = { alg: algorithm, typ: 'at+jwt', kid: key.keyId, ...token.header };
  const signingInput = `${encode(header)}.${encode(claimsOf(token, state))}`;
  if (algorithm === 'none') return `${signingInput}.`;
  const signer = token.foreignKey ? foreignKey() : key;
  const signature = algorithm === 'HS256' ? signer.signHmac(signingInput) : signer.sign(signingInput);
  return `${signingInput}.${signature.toString('base64url')}`;
}

function claimsOf(token: TestToken, state: Parameters<typeof signTestToken>[1]): object {
  const { clientId = DEFAULT_CLIENT, expired, notYetValid, lifetimeSeconds = 300 } = token;
  const issuedAt = Math.floor(state.nowMs / 1000) - (expired ? 2 * HALF_AN_HOUR_SECONDS : 0);
  const notBefore = notYetValid ? issuedAt + HALF_AN_HOUR_SECONDS : undefined;
  return {
    iss: token.issuer ?? state.issuer,
    aud: token.audience ?? state.audience,
    sub: clientId,
    client_id: clientId,
    scope: token.scope,
    iat: issuedAt,
    nbf: notBefore,
    exp: expired ? issuedAt + HALF_AN_HOUR_SECONDS : (notBefore ?? issuedAt) + lifetimeSeconds,
    jti: randomUUID(),
    generation: token.generation ?? state.generationOf(clientId),
    ...token.claims,
  };
}

/** JSON as base64url; members that are `undefined` are left out. */
export function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** A signing key with its public half. */
export interface TestKey {
  readonly keyId: string;
  /** The public key (RFC 7517 section 4). */
  readonly jwk: Readonly<Record<string, unknown>>;
  sign(this: void, input: string): Buffer;
  /** An HMAC whose secret is the public key: a gate that pins no algorithm accepts it (RFC 8725 section 2.1). */
  signHmac(input: string): Buffer;
}

/** Makes a key for one algorithm. */
export function testKey(algorithm: Algorithm): TestKey {
  const { publicKey, privateKey } = generate(algorithm);
  const keyId = randomUUID();
  const hash = algorithm.startsWith('Ed') ? null : `sha${algorithm.slice(2)}`;
  return {
    keyId,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: algorithm, use: 'sig' },
    sign: (input) => sign(hash, Buffer.from(input), { key: privateKey, ...signatureForm(algorithm) }),
    signHmac(input) {
      const secret = publicKey.export({ type: 'spki', format: 'pem' });
      return createHmac('sha256', secret).update(input).digest();
    },
  };
}

function generate(algorithm: Algorithm): { publicKey: KeyObject; privateKey: KeyObject } {
  if (algorithm.startsWith('Ed')) return generateKeyPairSync('ed25519');
  if (!algorithm.startsWith('ES')) return generateKeyPairSync('rsa', { modulusLength: 2048 });
  const bits = algorithm === 'ES512' ? '521' : algorithm.slice(2);
  return generateKeyPairSync('ec', { namedCurve: `P-${bits}` });
}

/** RFC 7518 sections 3.4 and 3.5: r and s concatenated; a salt as long as the hash. */
function signatureForm(algorithm: Algorithm): SigningOptions {
  if (algorithm.startsWith('ES')) return { dsaEncoding: 'ieee-p1363' };
  if (!algorithm.startsWith('PS')) return {};
  return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
}
