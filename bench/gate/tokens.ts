import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { generateKeyPairSync, sign } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

const signAsync = promisify(sign) as (algorithm: string, data: Buffer, key: KeyObject) => Promise<Buffer>;

const AUDIENCE = 'https://api.example.com';
const KEY_ID = 'bench';
const SCOPE = 'items:read orders:read orders:write';

/** An issuer of RS256 tokens that serves its key set over HTTP. */
export interface Issuer {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUri: string;
  readonly jwks: { readonly keys: readonly JsonWebKey[] };
  /** Signs `count` different tokens for 1,000 clients by turns. */
  tokens(count: number): Promise<readonly string[]>;
  close(): void;
}

/** Starts the issuer on a free port. */
export async function startIssuer(): Promise<Issuer> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }] };
  const server = createServer((_req, res) => {
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(jwks));
  });
  const address = await listen(server);
  let serial = 0;

  function signingInput(): string {
    const issuedAt = Math.floor(Date.now() / 1000) - 60;
    const clientId = `till-${serial % 1_000}`;
    const claims = {
      ...{ iss: address, aud: AUDIENCE, sub: clientId, client_id: clientId, scope: SCOPE },
      ...{ iat: issuedAt, exp: issuedAt + 43_200, jti: `token-${serial++}` },
      generation: 1_700_000_000_000,
    };
    return `${encode({ alg: 'RS256', typ: 'at+jwt', kid: KEY_ID })}.${encode(claims)}`;
  }

  return {
    issuer: address,
    audience: AUDIENCE,
    jwksUri: `${address}/jwks`,
    jwks,
    tokens(count) {
      const inputs = Array.from({ length: count }, signingInput);
      return Promise.all(
        inputs.map(async (input) => {
          const signature = await signAsync('sha256', Buffer.from(input), privateKey);
          return `${input}.${signature.toString('base64url')}`;
        }),
      );
    },
    close: () => server.close(),
  };
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
