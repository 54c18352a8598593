import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
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

/** What package.json says of this package. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/**
 * Checks that peers are installed, in the newest major version that package.json allows. Does nothing in a bundle,
 * which has no packages to look for.
 *
 * @param user - what needs them, for the message: `tillgate/app`
 * @throws Error that names the command that installs what is missing
 */
export function requirePackages(user: string, names: readonly string[], versionOf = installedVersion): void {
  const manifest = ownManifest();
  if (!manifest) return;
  const wrong = [...new Set(names)].flatMap((one) => {
    const [major, version] = [newestMajor(manifest.peerDependencies[one] ?? '*'), versionOf(one)];
    return version === 'unknown' || version?.startsWith(`${major}.`)
      ? []
      : [{ wanted: `${one}@${major}`, one, version }];
  });
  if (wrong.length === 0) return;
  const old = wrong.flatMap(({ one, version }) => (version === undefined ? [] : [`${one} ${version} is too old`]));
  const hint = old.length === 0 ? '' : ` (${old.join(', ')}; a folder of its own may have a newer one)`;
  const install = `npm install ${wrong.map(({ wanted }) => wanted).join(' ')}`;
  throw new Error(`${user} needs packages that are not installed: ${install}${hint}`);
}

/** Version of an installed package; `unknown` where its `exports` hide it, `undefined` where there is none. */
export function installedVersion(name: string): string | undefined {
  const manifest = attempt(() => load(`${name}/package.json`) as { readonly version: string });
  return manifest?.version ?? attempt(() => load.resolve(name) && 'unknown');
}

const load = createRequire(__filename);

/** `5` of `^4.20.0 || ^5.0.0`: without a caret, which some shells interpret. */
function newestMajor(range: string): string {
  return /(\d+)[^|]*$/.exec(range)?.[1] ?? 'latest';
}

/** package.json, two levels up from src/core and from dist/core alike; `undefined` in a bundle. */
export function ownManifest(): Manifest | undefined {
  const manifest = attempt(
    () => JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8')) as Manifest,
  );
  return manifest?.name === 'tillgate' ? manifest : undefined;
}
