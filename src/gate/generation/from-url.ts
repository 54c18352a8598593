import { createRequire } from 'node:module';
import { loadPeer } from '../core/optional-peers';
import type * as Http from './http/log';
import type { GenerationSource } from './log';
import type { SourceDependencies } from './source-url';

/** The schemes of the URLs of stores, and the client to install for each; `''` where Node has it. */
const STORES = [
  [/^rediss?:/i, 'redis', 'redis@6'],
  [/^postgres(ql)?:/i, 'postgres', 'pg@8'],
] as const;

/** The part of `@tillgate/stores/url` that is used. */
interface Stores {
  sourceFromUrl(
    url: string,
    dependencies: Omit<SourceDependencies, 'fetch' | 'headers' | 'allowHttp'>,
  ): GenerationSource;
}

/**
 * Makes the source for a URL. The caller closes it.
 *
 * @throws TypeError when the scheme is unknown, the URL is wrong, or a package is missing; the message does not repeat the URL, which may
 * hold a password.
 */
export function generationsFromUrl(url: string, dependencies: SourceDependencies = {}): GenerationSource {
  const given: SourceDependencies = { __proto__: null, ...dependencies } as SourceDependencies;
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- each source is loaded on first use, to keep the import of the package fast
  if (/^https?:/i.test(url)) return (require('./http/log') as typeof Http).httpFromUrl(url, given);
  const store = STORES.find(([schemes]) => schemes.test(url));
  if (store) return fromStores(url, given, store[1], store[2]);
  const scheme = /^([a-z][a-z0-9+.-]{0,30}:)/i.exec(url)?.[1]?.toLowerCase();
  const got = scheme === undefined ? 'a URL without a scheme' : `"${scheme}"`;
  throw new TypeError(`generations: expected an http(s):, redis(s): or postgres: URL, got ${got}`);
}

/** `@tillgate/stores` is of the same version, which both packages say by their names: the loader may be that of the command. */
function fromStores(
  url: string,
  { load, clock, schedule }: SourceDependencies,
  scheme: string,
  client: string,
): GenerationSource {
  const loader = load ?? createRequire(__filename);
  const { version } = loader('tillgate/package.json') as { readonly version: string };
  const stores = loadPeer<Stores>('@tillgate/stores', loader, { entry: 'url', version });
  if (!stores.module) {
    const remedy = `npm install @tillgate/stores@${version} ${client}`.trim();
    throw new TypeError(`generations: a ${scheme}: URL needs @tillgate/stores, and ${stores.problem}: ${remedy}`);
  }
  return stores.module.sourceFromUrl(url, { load, clock, schedule });
}
