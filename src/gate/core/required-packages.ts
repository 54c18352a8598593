import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { attempt } from './objects';

/** Peers that the scaffold loads. */
export const APP_PACKAGES = [
  'ajv',
  'ajv-formats',
  'express',
  'express-rate-limit',
  'helmet',
  'js-yaml',
  'pino',
  'swagger-ui-express',
] as const;
/** Peers that the embedded token server loads. */
export const AUTH_SERVER_PACKAGES = ['cors', 'express', 'express-rate-limit', 'helmet', 'jsonwebtoken'] as const;

/**
 * Major versions of the optional peers that work. Their range in package.json is `*`: with a narrower
 * range npm would refuse to install the package next to another version, even if the peer is never loaded.
 */
const MAJORS: Readonly<Record<string, readonly number[]>> = {
  '@opentelemetry/api': [1],
  ajv: [8],
  'ajv-formats': [3],
  cors: [2],
  express: [5],
  'express-rate-limit': [8],
  helmet: [8],
  ioredis: [5, 6],
  'js-yaml': [5],
  jsonwebtoken: [9],
  pg: [8],
  pino: [10],
  'rate-limit-redis': [6],
  redis: [5, 6],
  'swagger-ui-express': [5],
};

/** What package.json says of this package. */
interface Manifest {
  readonly name: string;
  readonly version: string;
}

/**
 * Checks that peers are installed, in a version that works. Does nothing in a bundle, which has no packages to look for.
 *
 * @param user - what needs them, for the message: `@tillgate/app`
 * @throws Error that names the command that installs what is missing, and the versions that were found
 */
export function requirePackages(user: string, names: readonly string[], versionOf = installedVersion): void {
  if (!ownManifest()) return;
  const wrong = [...new Set(names)].filter((name) => !isSupported(name, versionOf(name)));
  if (wrong.length === 0) return;
  const found = wrong.filter((name) => versionOf(name) !== undefined).map((name) => `${name} ${versionOf(name)}`);
  const hint = found.length === 0 ? '' : ` (found ${found.join(', ')}; a folder of its own may have another version)`;
  const install = `npm install ${wrong.map(newest).join(' ')}`;
  throw new Error(`${user} needs packages that are not installed: ${install}${hint}`);
}

/** An optional peer, or why it cannot be used. */
export type Peer<Module> = { readonly module: Module } | { readonly module?: undefined; readonly problem: string };

/** Loads an optional peer when it is used. An installed package that is broken throws its own error. */
export function loadPeer<Module>(name: string, load: (name: string) => unknown): Peer<Module> {
  const version = attempt(() => (load(`${name}/package.json`) as Manifest).version) ?? 'unknown';
  if (!isSupported(name, version)) {
    return { problem: `${name} ${version} is installed, ${MAJORS[name]?.join(' or ')} is needed` };
  }
  try {
    return { module: load(name) as Module };
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND')) throw error;
    return { problem: `${name} is not installed` };
  }
}

/** Whether a version of a peer works; `unknown` is given the benefit of the doubt. */
function isSupported(name: string, version: string | undefined): boolean {
  if (version === undefined) return false;
  const [major] = version.split('.');
  return version === 'unknown' || !MAJORS[name] || MAJORS[name].includes(Number(major));
}

/** `redis@6`: without a caret, which some shells interpret. */
function newest(name: string): string {
  return `${name}@${MAJORS[name]?.at(-1) ?? 'latest'}`;
}

/** Version of an installed package; `unknown` where its files hide it, `undefined` where there is none. */
export function installedVersion(name: string): string | undefined {
  const main = attempt(() => ownRequire.resolve(name));
  if (main === undefined) return undefined;
  // `exports` may hide package.json, which is above the main file.
  for (let folder = dirname(main); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = attempt(() => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest);
    if (manifest?.name === name) return manifest.version;
  }
  return 'unknown';
}

const ownRequire = createRequire(__filename);

/** The package.json above this file, of the sources and of the build alike; `undefined` in a bundle. */
export function ownManifest(): Manifest | undefined {
  return attempt(() => {
    const folders = [join(__dirname, '..'), join(__dirname, '..', '..')];
    const file = folders.map((folder) => join(folder, 'package.json')).find((path) => existsSync(path));
    const manifest = JSON.parse(readFileSync(file ?? '', 'utf8')) as Manifest;
    return manifest.name === 'tillgate' ? manifest : undefined;
  });
}
