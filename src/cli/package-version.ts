import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Version of this package. package.json is two levels up from src/cli and from dist/cli alike. */
export function packageVersion(): string {
  const file = readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}
