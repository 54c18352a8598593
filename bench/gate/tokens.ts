import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { JsonWebKey, KeyObject, SignKeyObjectInput } from 'node:crypto';
import { promisify } from 'node:util';

const signAsync = promisify(sign) as (
  algorithm: string | null,
  data: Buffer,
  key: SignKeyObjectInput,
) => Promise<Buffer>;

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
  /** Signs `count` different tokens for 1,000 clients by turns. */
  tokens(count: number): Promise<readonly string[]>;
  close(): void;
}

/** Starts the issuer on a free port. */
export async function startIssuer(algorithm: Algorithm): Promise<Issuer> {
  const privateKey = newKey(algorithm);
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' });
  const jwks = { keys: [{ ...jwk, kid: KEY_ID, alg: algorithm, use: 'sig' }] };
  const server = createServer((_req, res) => {
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(jwks));
  });
  const address = await listen(server);
  // `r` and `s` concatenated for ES256 (RFC 7518 section 3.4); no other algorithm looks at it.
  const signingKey = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
  let serial = 0;

  function signingInput(): string {
    const issuedAt = Math.floor(Date.now() / 1000) - 60;
    const clientId = `till-${serial % 1_000}`;
    const claims = {
      ...{ iss: address, aud: AUDIENCE, sub: clientId, client_id: clientId, scope: SCOPE },
      ...{ iat: issuedAt, exp: issuedAt + 43_200, jti: `token-${serial++}` },
      generation: 1_700_000_000_000,
    };
    return `${encode({ alg: algorithm, typ: 'at+jwt', kid: KEY_ID })}.${encode(claims)}`;
  }

  return {
    issuer: address,
    audience: AUDIENCE,
    algorithm,
    jwksUri: `${address}/jwks`,
    jwks,
    tokens(count) {
      const inputs = Array.from({ length: count }, signingInput);
      return Promise.all(
        inputs.map(async (input) => {
          const signature = await signAsync(algorithm === 'EdDSA' ? null : 'sha256', Buffer.from(input), signingKey);
          return `${input}.${signature.toString('base64url')}`;
        }),
      );
    },
    close: () => server.close(),
  };
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
