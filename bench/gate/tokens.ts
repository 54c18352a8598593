import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { JsonWebKey, KeyObject, SignKeyObjectInput } from 'node:crypto';
import { promisify } from 'node:util';

const signAsync = promisify(sign) as (
  algorithm: string | null,
  data: Buffer,
  key: SignKeyObjectInput,
) => Promise<Buffer>;

/** Host and URL of all contenders, whatever their port: a proof is for one URL. */
export const HOST = 'api.example.com';
const URL_OF_REQUESTS = `http://${HOST}/v1/orders`;
const AUDIENCE = 'https://api.example.com';
const KEY_ID = 'bench';
const SCOPE = 'items:read orders:read orders:write';

/** The signature algorithms that the benchmark knows. */
export const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** An issuer that serves its key set over HTTP. */
export interface Issuer {
  readonly issuer: string;
  readonly audience: string;
  readonly algorithm: Algorithm;
  readonly jwksUri: string;
  readonly jwks: { readonly keys: readonly JsonWebKey[] };
  /** Signs `count` different tokens for 1,000 clients by turns; `changes` are claims that differ from those of a good one. */
  tokens(count: number, changes?: object): Promise<readonly string[]>;
  /** Signs `count` proofs of possession by turns for these tokens, which are all bound to one key. */
  proofs(count: number, tokens: readonly string[]): Promise<readonly string[]>;
  close(): void;
}

/** Starts the issuer on a free port. */
export async function startIssuer(
  algorithm: Algorithm,
  dpop = false,
  otherKeys: readonly JsonWebKey[] = [],
): Promise<Issuer> {
  const privateKey = newKey(algorithm);
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' });
  const jwks = { keys: [{ ...jwk, kid: KEY_ID, alg: algorithm, use: 'sig' }, ...otherKeys] };
  const server = createServer((_req, res) => {
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(jwks));
  });
  const address = await listen(server);
  // `r` and `s` concatenated for ES256 (RFC 7518 section 3.4); no other algorithm looks at it.
  const signingKey = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
  const callerKey = newKey('ES256');
  const { crv, kty, x, y } = createPublicKey(callerKey).export({ format: 'jwk' });
  const binding = dpop ? { cnf: { jkt: sha256(JSON.stringify({ crv, kty, x, y })) } } : undefined;
  let serial = 0;

  function signingInput(changes: object): string {
    const claims = { ...goodClaims(address, serial++), ...binding, ...changes };
    return `${encode({ alg: algorithm, typ: 'at+jwt', kid: KEY_ID })}.${encode(claims)}`;
  }

  return {
    issuer: address,
    audience: AUDIENCE,
    algorithm,
    jwksUri: `${address}/jwks`,
    jwks,
    tokens(count, changes = {}) {
      const hash = algorithm === 'EdDSA' ? null : 'sha256';
      return Promise.all(Array.from({ length: count }, () => signed(signingInput(changes), hash, signingKey)));
    },
    proofs(count, tokens) {
      const header = { alg: 'ES256', typ: 'dpop+jwt', jwk: { crv, kty, x, y } };
      const iat = Math.floor(Date.now() / 1000);
      const proofs = Array.from({ length: count }, (_, index) => {
        const ath = sha256(tokens[index % tokens.length] ?? '');
        const claims = { jti: `proof-${index}`, htm: 'GET', htu: URL_OF_REQUESTS, iat, ath };
        const input = `${encode(header)}.${encode(claims)}`;
        return signed(input, 'sha256', { key: callerKey, dsaEncoding: 'ieee-p1363' });
      });
      return Promise.all(proofs);
    },
    close: () => server.close(),
  };
}

function goodClaims(issuer: string, serial: number): object {
  const issuedAt = Math.floor(Date.now() / 1000) - 60;
  const clientId = `till-${serial % 1_000}`;
  return {
    iss: issuer,
    aud: AUDIENCE,
    sub: clientId,
    client_id: clientId,
    scope: SCOPE,
    iat: issuedAt,
    exp: issuedAt + 43_200,
    jti: `token-${serial}`,
    generation: 1_700_000_000_000,
  };
}

async function signed(input: string, hash: string | null, key: SignKeyObjectInput): Promise<string> {
  const signature = await signAsync(hash, Buffer.from(input), key);
  return `${input}.${signature.toString('base64url')}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function newKey(algorithm: Algorithm): KeyObject {
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519').privateKey;
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
    });
  });
}
