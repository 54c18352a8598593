import { attempt } from './objects';

/**
 * Major versions of the optional peers that work. Their range in package.json is `*`: with a narrower
 * range npm would refuse to install the package next to another version, even if the peer is never loaded.
 */
const MAJORS: Readonly<Record<string, readonly number[]>> = {
  '@opentelemetry/api': [1],
  ioredis: [5, 6],
  pg: [8],
  redis: [5, 6],
};

/** An optional peer, or why it cannot be used. */
type Peer<Module> = { readonly module: Module } | { readonly module?: undefined; readonly problem: string };

/** A peer that must be of one version, and the entry of it that is loaded. */
interface Exact {
  readonly entry: string;
  readonly version: string;
}

/** Loads an optional peer when it is used. An installed package that is broken throws its own error. */
export function loadPeer<Module>(name: string, load: (name: string) => unknown, exact?: Exact): Peer<Module> {
  const version = attempt(() => (load(`${name}/package.json`) as { readonly version: string }).version) ?? 'unknown';
  const isRight = exact ? version === exact.version : isSupported(name, version);
  const needed = exact?.version ?? MAJORS[name]?.join(' or ');
  if (!isRight && !(exact && isMissing(name, load))) {
    return { problem: `${name} ${version} is installed, ${needed} is needed` };
  }
  try {
    return { module: load(exact ? `${name}/${exact.entry}` : name) as Module };
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND')) throw error;
    return { problem: `${name} is not installed` };
  }
}

function isMissing(name: string, load: (name: string) => unknown): boolean {
  try {
    load(`${name}/package.json`);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND';
  }
}

/** Whether a version of a peer works; `unknown` is given the benefit of the doubt. */
function isSupported(name: string, version: string | undefined): boolean {
  if (version === undefined) return false;
  const [major] = version.split('.');
  return version === 'unknown' || !MAJORS[name] || MAJORS[name].includes(Number(major));
}
