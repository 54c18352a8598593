import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import rooms from '../src/rooms.json';

/*
 * Draws each room from the imports of its files, as a Mermaid flowchart: an arrow from a folder to one that it imports. A folder
 * is reached by the longest way, so an arrow that a longer way replaces is left out.
 */

const SRC = join(__dirname, '../src');
const IMPORT = /^(?:import|export)\b[^;]*? from '([^']+)';|^import '([^']+)';/gm;
/** Folders of `src`. */
export const ROOMS = rooms.map(({ folder }) => folder);
const PACKAGES = rooms.map(({ name }) => name);

type Arrows = ReadonlyMap<string, ReadonlySet<string>>;

/** The flowchart of one room. */
export function pictureOf(room: string): string {
  const arrows = withoutDetours(arrowsOf(room));
  const names = [...new Set([...arrows.keys(), ...[...arrows.values()].flatMap((targets) => [...targets])])].sort();
  const id = (name: string): string => `n${names.indexOf(name)}`;
  const lines = [
    'flowchart TB',
    ...names.map((name) => `  ${id(name)}[${JSON.stringify(name)}]`),
    ...names.flatMap((from) => [...(arrows.get(from) ?? [])].sort().map((to) => `  ${id(from)} --> ${id(to)}`)),
  ];
  return `\`\`\`mermaid\n${lines.join('\n')}\n\`\`\``;
}

/** Which parts of a room import which: its folders, its files outside of folders, and the other rooms. */
function arrowsOf(room: string): Arrows {
  const root = join(SRC, room);
  const arrows = new Map<string, Set<string>>();
  for (const file of sourcesIn(root)) {
    const from = partOf(root, file);
    const targets = arrows.get(from) ?? new Set();
    arrows.set(from, targets);
    for (const [, named, bare] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const specifier = named ?? bare ?? '';
      const other = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1);
      const to = specifier.startsWith('.')
        ? partOf(root, resolve(dirname(file), specifier))
        : PACKAGES.find((name) => name === other.join('/'));
      if (to !== undefined && to !== from) targets.add(to);
    }
  }
  return arrows;
}

function sourcesIn(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.d)\.ts$/.test(name) && !/(^|[\\/])(dist|node_modules|template)[\\/]/.test(name))
    .map((name) => join(root, name))
    .sort();
}

/** The folder in the room, or the name of a file that is in none; those of the command are one part. */
function partOf(root: string, path: string): string {
  const [first = ''] = relative(root, path).split(sep);
  const isFolder = readdirSync(root, { withFileTypes: true }).some((one) => one.isDirectory() && one.name === first);
  if (isFolder) return first;
  const file = first.replace(/\.(ts|json)$/, '');
  return root === join(SRC, 'cli') && !['main', 'index'].includes(file) ? 'other files' : file;
}

/** Without the arrows from a part to another one that it reaches by a longer way too. */
function withoutDetours(arrows: Arrows): Arrows {
  const reaches = (from: string, to: string, seen: Set<string>): boolean => {
    if (seen.has(from)) return false;
    seen.add(from);
    return [...(arrows.get(from) ?? [])].some((next) => next === to || reaches(next, to, seen));
  };
  const direct = [...arrows].map(([from, targets]) => {
    const kept = [...targets].filter(
      (to) => ![...targets].some((over) => over !== to && reaches(over, to, new Set([from]))),
    );
    return [from, new Set(kept)] as const;
  });
  return new Map(direct);
}
