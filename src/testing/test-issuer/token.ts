import { randomUUID } from 'node:crypto';
import { readOptions } from '../../core/options';
import type { TestKey } from './keys';

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

/** A token whose options have been checked. */
interface CheckedToken extends Omit<TestToken, 'clientId'> {
  readonly clientId: string;
}

/** The current state of the issuer, shared by all of its tokens. */
interface IssuerState {
  readonly issuer: string;
  readonly audience: string;
  readonly nowMs: number;
  readonly generation: number;
  /** The key whose id the header names. */
  readonly key: TestKey;
  /** A key that is not published. */
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
 * Checks option names and the likeliest mistakes, not claims: tests need wrong claims.
 *
 * @throws TypeError
 */
export function checkTestToken(token: TestToken, defaultClientId: string): CheckedToken {
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

/** Builds and signs a token (RFC 9068 section 2, RFC 7515 section 7.1). */
export function signTestToken(token: CheckedToken, state: IssuerState): string {
  const { key, foreignKey } = state;
  const { algorithm = key.jwk['alg'] } = token;
  const header = { alg: algorithm, typ: 'at+jwt', kid: key.keyId, ...token.header };
  const signingInput = `${encode(header)}.${encode(claimsOf(token, state))}`;
  const signer = token.foreignKey ? foreignKey() : key;
  if (algorithm === 'none') return `${signingInput}.`;
  const signature = algorithm === 'HS256' ? signer.signHmac(signingInput) : signer.sign(signingInput);
  return `${signingInput}.${signature.toString('base64url')}`;
}

function claimsOf(token: CheckedToken, state: IssuerState): object {
  const { clientId, generation = state.generation, expired, notYetValid } = token;
  const issuedAt = Math.floor(state.nowMs / 1000) - (expired ? 2 * HALF_AN_HOUR_SECONDS : 0);
  const notBefore = notYetValid ? issuedAt + HALF_AN_HOUR_SECONDS : undefined;
  const lifetime = token.lifetimeSeconds ?? 300;
  return {
    iss: token.issuer ?? state.issuer,
    aud: token.audience ?? state.audience,
    sub: clientId,
    client_id: clientId,
    scope: token.scope,
    iat: issuedAt,
    nbf: notBefore,
    exp: expired ? issuedAt + HALF_AN_HOUR_SECONDS : (notBefore ?? issuedAt) + lifetime,
    jti: randomUUID(),
    generation,
    ...token.claims,
  };
}

/** JSON as base64url; members that are `undefined` are left out. */
function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
