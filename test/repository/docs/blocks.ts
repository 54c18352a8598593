import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(__dirname, '../../..');

/** README and the pages that have examples in JavaScript or TypeScript. */
export const PAGES_WITH_CODE = [
  'README.md',
  'examples/migration/keycloak-connect/README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].filter((page) => blocksOf(page).length > 0);

/** One fenced block of a page. */
export interface Block {
  /** `no-run`: types are checked. `sketch`: only the syntax is, because it uses packages that are not installed. */
  readonly mode: 'run' | 'no-run' | 'sketch';
  readonly source: string;
}

export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```(?:js|ts)(?: (no-run|sketch))?\n([^]*?)^```$/gm)].map(
    ([, mode = 'run', source = '']) => ({ mode: mode as Block['mode'], source }),
  );
}

/** The examples of a page as one module: each block may use what the first one declares, and may declare it anew. */
export interface Program {
  readonly imports: readonly string[];
  readonly body: string;
}

const IMPORT = /^import (?:[^;]*? from )?'[^']+';\n/gm;

export function programOf(blocks: readonly Block[]): Program {
  const imports = new Set(blocks.flatMap(({ source }) => source.match(IMPORT) ?? []).flatMap(oneNameEach));
  const [first = '', ...others] = blocks.map(({ source }) => source.replace(IMPORT, ''));
  return { imports: [...imports], body: [first, ...others.map((source) => `{\n${source}}\n`)].join('\n') };
}

/** `import a, { b, c } from 'd'` as three imports, so that two blocks may import the same name. */
function oneNameEach(statement: string): readonly string[] {
  const [, isType = '', fallback, named = '', from] =
    /^import (type )?(?:(\w+)(?:, )?)?(?:\{([^}]*)\})? from ('[^']+');/.exec(statement) ?? [];
  if (from === undefined) return [statement];
  const names = named.split(',').flatMap((name) => (name.trim() === '' ? [] : [`{ ${name.trim()} }`]));
  return [...(fallback === undefined ? [] : [fallback]), ...names].map(
    (name) => `import ${isType}${name} from ${from};\n`,
  );
}

/** Stands in for node:fs/promises: files that the examples write. */
export function filesInMemory(): Readonly<
  Record<'readFile' | 'writeFile' | 'rename', (...args: never[]) => Promise<unknown>>
> {
  const files = new Map<string, string>();
  const read = (name: string): string => {
    const text = files.get(name);
    if (text === undefined) throw new Error('ENOENT');
    return text;
  };
  return {
    readFile: async (name: string) => Promise.resolve().then(() => read(name)),
    writeFile: async (name: string, text: string) => Promise.resolve(void files.set(name, text)),
    rename: async (from: string, to: string) => Promise.resolve(void files.set(to, read(from))),
  };
}
