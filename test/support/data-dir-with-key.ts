import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newSigningKey } from '../../src/cli/auth-server/tokens';
import type { StoredKey } from '../../src/cli/auth-server/store';

let signing: Promise<StoredKey> | undefined;

/** Puts a state with a key into the data directory of a token server: making a key takes longer than most tests. */
export async function putKeyInto(dataDir: string): Promise<void> {
  const keys = { signing: await (signing ??= newSigningKey()), retired: [] };
  writeFileSync(join(dataDir, 'state.json'), JSON.stringify({ format: 2, keys, clients: [] }), { mode: 0o600 });
}
