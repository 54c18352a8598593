import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import rsaKeys from '../support/rsa-keys.json';

const jwk = rsaKeys[0]!;
const thumbprint = JSON.stringify({ e: jwk.e, kty: jwk.kty, n: jwk.n });
const kid = createHash('sha256').update(thumbprint).digest('base64url');
/** A signing key of a token server, because generating one takes up to a second. */
export const KEY = { kid, alg: 'RS256' as const, jwk, publishedUntilMs: Number.MAX_SAFE_INTEGER };
const STATE = JSON.stringify({ format: 2, clients: [], keys: { signing: KEY, retired: [] } });

/** A new data directory whose token server has a key, and no clients. */
export function newDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-cli-'));
  putKeyInto(dataDir);
  return dataDir;
}

/** Puts a state with that key into a data directory. */
export function putKeyInto(dataDir: string): void {
  writeFileSync(join(dataDir, 'state.json'), STATE, { mode: 0o600 });
}
