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
  const notInstalled = { problem: `${name} is not installed` };
  let version: string | undefined;
  try {
    ({ version } = load(`${name}/package.json`) as { readonly version?: string });
  } catch (error) {
    if (exact && isNotFound(error)) return notInstalled;
  }
  const isRight = exact ? version === exact.version : isSupported(name, version);
  const needed = exact?.version ?? MAJORS[name]?.join(' or ');
  if (!isRight) return { problem: `${name} ${version ?? 'unknown'} is installed, ${needed} is needed` };
  try {
    return { module: load(exact ? `${name}/${exact.entry}` : name) as Module };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return notInstalled;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND';
}

/** Whether a version of a peer works; an unknown one is given the benefit of the doubt. */
function isSupported(name: string, version: string | undefined): boolean {
  const majors = MAJORS[name];
  return version === undefined || !majors || majors.includes(Number(version.split('.')[0]));
}
