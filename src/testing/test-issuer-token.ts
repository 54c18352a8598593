import { randomUUID } from 'node:crypto';
import { readOptions } from '../core/options';
import type { TestKey } from './test-issuer-keys';

/** What one token says and how it is signed; everything has a default that passes. */
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
  /** The client credential changes right after this token is issued, as by `bump()`; its other tokens go with it. */
  readonly superseded?: boolean | undefined;
  /** Another `iss` than the issuer's own. */
  readonly issuer?: string | undefined;
  /** Another `aud`. */
  readonly audience?: string | readonly string[] | undefined;
  /** Signed by somebody else, under the key id of the issuer's key. */
  readonly foreignKey?: boolean | undefined;
  /** `none`: not signed at all; `HS256`: signed with an HMAC whose secret is the issuer's public key (RFC 8725 section 2.1). */
  readonly algorithm?: 'none' | 'HS256' | undefined;
  /** Claims that replace or, with `undefined`, remove the usual ones. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** Header members that replace or, with `undefined`, remove the usual ones. */
  readonly header?: Readonly<Record<string, unknown>> | undefined;
}

/** A token whose options have been checked. */
export interface TokenPlan extends Omit<TestToken, 'clientId'> {
  readonly clientId: string;
}

/** What every token of one issuer has in common at one moment. */
export interface TokenGround {
  readonly issuer: string;
  readonly audience: string;
  readonly nowMs: number;
  readonly generation: number;
  /** The key whose id the header names. */
  readonly key: TestKey;
  /** A key that nobody publishes. */
  readonly foreignKey: () => TestKey;
}

const TOKEN_OPTIONS = [
  'scope',
  'clientId',
  'generation',
  'lifetimeSeconds',
  'expired',
  'notYetValid',
  'superseded',
  'issuer',
  'audience',
  'foreignKey',
  'algorithm',
  'claims',
  'header',
] as const satisfies readonly (keyof TestToken)[];

const HALF_AN_HOUR_SECONDS = 1_800;

/**
 * Checks what a token is to say. Only names and the likeliest mix-ups: wrong claims are what tests are made of.
 *
 * @throws TypeError
 */
export function readToken(token: TestToken, defaultClientId: string): TokenPlan {
  const read = readOptions('token', token, TOKEN_OPTIONS);
  if (token.scope !== undefined && typeof token.scope !== 'string') {
    read.refuse('scope', 'a string of space-separated scopes (claims: { scope: ... } takes anything)');
  }
  const { algorithm } = token;
  if (algorithm !== undefined && algorithm !== 'none' && algorithm !== 'HS256') {
    read.refuse(
      'algorithm',
      'none or HS256 (createTestIssuer({ algorithm }) chooses what good tokens are signed with)',
    );
  }
  for (const flag of ['expired', 'notYetValid', 'superseded', 'foreignKey'] as const) read.boolean(flag, false);
  return { ...token, clientId: read.string('clientId') ?? defaultClientId };
}

/** Writes and signs a token (RFC 9068 section 2, RFC 7515 section 7.1). */
export function writeToken(plan: TokenPlan, ground: TokenGround): string {
  const { key, foreignKey } = ground;
  const { algorithm = key.jwk['alg'] } = plan;
  const header = { alg: algorithm, typ: 'at+jwt', kid: key.keyId, ...plan.header };
  const signingInput = `${encode(header)}.${encode(claimsOf(plan, ground))}`;
  const signer = plan.foreignKey ? foreignKey() : key;
  if (algorithm === 'none') return `${signingInput}.`;
  const signature = algorithm === 'HS256' ? signer.confuse(signingInput) : signer.sign(signingInput);
  return `${signingInput}.${signature.toString('base64url')}`;
}

function claimsOf(plan: TokenPlan, ground: TokenGround): object {
  const { clientId, generation = ground.generation, expired, notYetValid } = plan;
  const issuedAt = Math.floor(ground.nowMs / 1000) - (expired ? 2 * HALF_AN_HOUR_SECONDS : 0);
  const notBefore = notYetValid ? issuedAt + HALF_AN_HOUR_SECONDS : undefined;
  const lifetime = plan.lifetimeSeconds ?? 300;
  return {
    iss: plan.issuer ?? ground.issuer,
    aud: plan.audience ?? ground.audience,
    sub: clientId,
    client_id: clientId,
    scope: plan.scope,
    iat: issuedAt,
    nbf: notBefore,
    exp: expired ? issuedAt + HALF_AN_HOUR_SECONDS : (notBefore ?? issuedAt) + lifetime,
    jti: randomUUID(),
    generation,
    ...plan.claims,
  };
}

/** JSON as base64url; members that are `undefined` are left out. */
function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
