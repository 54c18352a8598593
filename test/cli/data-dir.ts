import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import rsaKeys from '../support/rsa-keys.json';

const [jwk] = rsaKeys;
const signing = { kid: 'throw-away', alg: 'RS256', jwk: jwk!, publishedUntilMs: Number.MAX_SAFE_INTEGER };
const STATE = JSON.stringify({ format: 2, clients: [], keys: { signing, retired: [] } });

/** A new data directory whose token server has a key, because generating one takes up to a second, and no clients. */
export function newDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-cli-'));
  writeFileSync(join(dataDir, 'state.json'), STATE, { mode: 0o600 });
  return dataDir;
}
