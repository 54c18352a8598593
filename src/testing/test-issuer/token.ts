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

/** What the tokens of an issuer have in common. */
interface IssuerState {
  readonly issuer: string;
  readonly audience: string;
  readonly nowMs: number;
  readonly generationOf: (clientId: string) => number;
  /** The key whose id the header names. */
  readonly key: TestKey;
  /** A key that is not published. */
  readonly foreignKey: () => TestKey;
}

const FLAGS = ['expired', 'notYetValid', 'superseded', 'foreignKey'] as const;
const TOKEN_OPTIONS = [
  'scope',
  'clientId',
  'generation',
  'lifetimeSeconds',
  ...FLAGS,
  'issuer',
  'audience',
  'algorithm',
  'claims',
  'header',
] as const satisfies readonly (keyof TestToken)[];

/** The client of tokens that name none. */
export const DEFAULT_CLIENT = 'test-client';
const HALF_AN_HOUR_SECONDS = 1_800;

/**
 * Builds and signs a token (RFC 9068 section 2, RFC 7515 section 7.1). Checks option names and the likeliest mistakes, not
 * claims: tests need wrong claims.
 *
 * @throws TypeError
 */
export function signTestToken(token: TestToken, state: IssuerState): string {
  checkOptions(token);
  const { key, foreignKey } = state;
  const { algorithm = key.jwk['alg'] } = token;
  const header = { alg: algorithm, typ: 'at+jwt', kid: key.keyId, ...token.header };
  const signingInput = `${encode(header)}.${encode(claimsOf(token, state))}`;
  if (algorithm === 'none') return `${signingInput}.`;
  const signer = token.foreignKey ? foreignKey() : key;
  const signature = algorithm === 'HS256' ? signer.signHmac(signingInput) : signer.sign(signingInput);
  return `${signingInput}.${signature.toString('base64url')}`;
}

function checkOptions(token: TestToken): void {
  const read = readOptions('token', token, TOKEN_OPTIONS);
  if (token.scope !== undefined && typeof token.scope !== 'string') {
    read.refuse('scope', 'a string of space-separated scopes (claims: { scope: ... } takes anything)');
  }
  if (token.algorithm !== undefined && token.algorithm !== 'none' && token.algorithm !== 'HS256') {
    const otherwise = 'createTestIssuer({ algorithm }) chooses what good tokens are signed with';
    read.refuse('algorithm', `none or HS256 (${otherwise})`);
  }
  read.string('clientId');
  for (const flag of FLAGS) read.boolean(flag, false);
}

function claimsOf(token: TestToken, state: IssuerState): object {
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
function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
