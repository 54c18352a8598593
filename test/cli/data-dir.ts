import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import rsaKeys from '../support/rsa-keys.json';

const jwk = rsaKeys[0]!;
const thumbprint = JSON.stringify({ e: jwk.e, kty: jwk.kty, n: jwk.n });
const kid = createHash('sha256').update(thumbprint).digest('base64url');
const signing = { kid, alg: 'RS256', jwk, publishedUntilMs: Number.MAX_SAFE_INTEGER };
const STATE = JSON.stringify({ format: 2, clients: [], keys: { signing, retired: [] } });

/** A new data directory whose token server has a key, because generating one takes up to a second, and no clients. */
export function newDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-cli-'));
  putKeyInto(dataDir);
  return dataDir;
}

/** Puts a state with that key into a data directory. */
export function putKeyInto(dataDir: string): void {
  writeFileSync(join(dataDir, 'state.json'), STATE, { mode: 0o600 });
}
