// The one reader of package-lock.json: which packages come with a package.
import { readFileSync } from 'node:fs';

/** What package-lock.json says about each folder that holds a package: the root is '', a room `src/gate`. */
export const { packages, ...lock } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));

/** Folders of what a package depends on, directly or not. A room of this repository counts as the link to it. */
export function comingWith(folder, kinds = ['dependencies'], found = new Set()) {
  const { link, resolved } = packages[folder];
  const manifest = packages[link ? resolved : folder];
  for (const name of kinds.flatMap((kind) => Object.keys(manifest[kind] ?? {}))) {
    const path = resolvedFrom(link ? resolved : folder, name);
    if (path === undefined) {
      // An optional peer, or a package of another platform, need not be in it.
      if (name in (manifest.dependencies ?? {})) throw new Error(`package-lock.json has no ${name} for ${folder}`);
    } else if (!found.has(path)) {
      comingWith(path, kinds, found.add(path));
    }
  }
  return found;
}

/** Node's lookup: the nearest node_modules that has the package. */
function resolvedFrom(folder, name) {
  const candidate = `${folder}${folder === '' ? '' : '/'}node_modules/${name}`;
  if (candidate in packages) return candidate;
  if (folder === '') return undefined;
  // The folder of a room is in no node_modules: what is above it is the root.
  return resolvedFrom(folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/'))), name);
}
