import { createSign, generateKeyPairSync, randomUUID } from 'node:crypto';
import type { AuthenticateOptions } from '../index';

/** Options of `createTestIssuer()`. */
export interface TestIssuerOptions {
  /** `iss` of the tokens. Default `https://login.test`. */
  readonly issuer?: string;
  /** `aud` of the tokens. Default `https://api.test`. */
  readonly audience?: string;
  /** Time in ms since the epoch; shared with the gate through `options`. Default: the wall clock. */
  readonly clock?: () => number;
}

/** What one token says; everything has a default that passes. */
export interface TestToken {
  /** Space-separated scopes. Default: none. */
  readonly scope?: string;
  /** Default `test-client`. */
  readonly clientId?: string;
  /** Default: the client's current generation. */
  readonly generation?: number;
  /** Lifetime in seconds. Default 300. */
  readonly lifetimeSeconds?: number;
  /** Issued an hour ago and expired half an hour ago. */
  readonly expired?: boolean;
  /** Claims that replace or, with `undefined`, remove the usual ones. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Header members that replace or, with `undefined`, remove the usual ones. */
  readonly header?: Readonly<Record<string, unknown>>;
}

/** An issuer for tests: keys of its own, any token, no network. */
export interface TestIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** What `authenticate()` needs to trust this issuer. Spread it and add what the test is about. */
  readonly options: AuthenticateOptions;
  /** Signs a token (RFC 9068). */
  token(token?: TestToken): string;
  /** The client credential has changed: answers its new generation, which later tokens carry. */
  bump(clientId?: string): number;
}

const DEFAULT_CLIENT = 'test-client';

/**
 * Makes an issuer for contract tests. Its keys are given to the gate, so nothing is fetched and nothing listens.
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { createTestIssuer } from 'tillgate/testing';
 *
 * const issuer = createTestIssuer();
 * const gate = authenticate(issuer.options);
 * const authorization = `Bearer ${issuer.token({ scope: 'orders:read' })}`;
 * ```
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  const { issuer = 'https://login.test', audience = 'https://api.test', clock = () => Date.now() } = options;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const kid = randomUUID();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' };
  const generations = new Map<string, number>();

  function generationOf(clientId: string): number {
    const generation = generations.get(clientId) ?? clock();
    generations.set(clientId, generation);
    return generation;
  }

  function claimsOf(token: TestToken): object {
    const { clientId = DEFAULT_CLIENT, lifetimeSeconds = 300, expired = false } = token;
    const issuedAt = Math.floor(clock() / 1000) - (expired ? 3_600 : 0);
    return {
      iss: issuer,
      aud: audience,
      sub: clientId,
      client_id: clientId,
      scope: token.scope,
      iat: issuedAt,
      exp: issuedAt + (expired ? 1_800 : lifetimeSeconds),
      jti: randomUUID(),
      generation: token.generation ?? generationOf(clientId),
      ...token.claims,
    };
  }

  return {
    issuer,
    audience,
    options: { issuer, audience, keys: { keys: [jwk] }, clock },
    token(token = {}) {
      const header = { alg: 'ES256', typ: 'at+jwt', kid, ...token.header };
      const signingInput = `${encode(header)}.${encode(claimsOf(token))}`;
      const signature = createSign('sha256').update(signingInput).sign({ key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${signingInput}.${signature.toString('base64url')}`;
    },
    bump(clientId = DEFAULT_CLIENT) {
      const generation = Math.max(generationOf(clientId) + 1, clock());
      generations.set(clientId, generation);
      return generation;
    },
  };
}

/** JSON as base64url; members that are `undefined` are left out. */
function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
