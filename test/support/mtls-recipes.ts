import { transformSync } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import type { MtlsOptions } from '../../src/gate/possession';

type Certificate = NonNullable<MtlsOptions['certificate']>;

/** The recipe of docs/possession.md for a proxy, as it is there. */
export function certificateBehind(proxy: string): Certificate {
  const page = readFileSync(join(__dirname, '../../docs/possession.md'), 'utf8');
  const [source = ''] = /^const header = [^]*?^};$/m.exec(page) ?? [];
  const { code } = transformSync(source, { loader: 'ts', target: 'es2022' });
  const recipes = runInNewContext(`${code}; certificateBehind`, { decodeURIComponent }) as Record<string, Certificate>;
  const recipe = recipes[proxy];
  if (!recipe) throw new Error(`docs/possession.md has no recipe for ${proxy}`);
  return recipe;
}
