import { createRequire } from 'node:module';
import { loadPeer } from '../core/optional-peers';
import type * as Http from './http/log';
import type { GenerationSource } from './log';
import type { SourceDependencies } from './source-url';

/** The schemes of the URLs of stores, and the client to install for each. */
const STORES = [
  [/^rediss?:/i, 'redis', 'redis@6'],
  [/^postgres(ql)?:/i, 'postgres', 'pg@8'],
] as const;
type Store = (typeof STORES)[number];

/** The part of `@tillgate/stores/url` that is used. */
interface Stores {
  sourceFromUrl(url: string, dependencies: Pick<SourceDependencies, 'load' | 'clock' | 'schedule'>): GenerationSource;
}

/**
 * Makes the source for a URL. The caller closes it.
 *
 * @throws TypeError when the scheme is unknown, the URL is wrong, or a package is missing; the message does not repeat the URL, which may
 * hold a password.
 */
export function generationsFromUrl(url: string, dependencies: SourceDependencies = {}): GenerationSource {
  const given: SourceDependencies = { __proto__: null, ...dependencies } as SourceDependencies;
  if (/^https?:/i.test(url)) {
    const { headers, allowHttp, fetch, schedule } = given;
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- each source is loaded on first use, to keep the import of the package fast
    return (require('./http/log') as typeof Http).httpGenerations({ url, headers, allowHttp, fetch, schedule });
  }
  const store = STORES.find(([schemes]) => schemes.test(url));
  if (store) return fromStores(url, given, store);
  const scheme = /^([a-z][a-z0-9+.-]{0,30}:)/i.exec(url)?.[1]?.toLowerCase();
  const got = scheme === undefined ? 'a URL without a scheme' : `"${scheme}"`;
  throw new TypeError(`generations: expected an http(s):, redis(s): or postgres: URL, got ${got}`);
}

/** `@tillgate/stores` is of the same version, which both packages say by their names: the loader may be that of the command. */
function fromStores(url: string, given: SourceDependencies, [, scheme, client]: Store): GenerationSource {
  const { load, clock, schedule } = given;
  const loader = load ?? createRequire(__filename);
  const { version } = loader('tillgate/package.json') as { readonly version: string };
  const stores = loadPeer<Stores>('@tillgate/stores', loader, { entry: 'url', version });
  if (!stores.module) {
    const remedy = `npm install @tillgate/stores@${version} ${client}`;
    throw new TypeError(`generations: a ${scheme}: URL needs @tillgate/stores, and ${stores.problem}: ${remedy}`);
  }
  return stores.module.sourceFromUrl(url, { load, clock, schedule });
}
