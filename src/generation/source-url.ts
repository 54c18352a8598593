import { createRequire } from 'node:module';
import type { Dependencies } from '../core/dependencies';

/** Loads a package by its name. */
export type Load = (name: string) => unknown;

/** Dependencies of a source that is made from a URL; each source uses those that it needs. */
export interface SourceDependencies extends Pick<Dependencies, 'fetch' | 'clock' | 'schedule' | 'logger'> {
  /** Sent with every request to an `http(s):` source. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Accepts an `http:` source on another host than loopback. */
  readonly allowHttp?: boolean | undefined;
  /**
   * Longest token age of all processes that read the store, in ms: `publish()` removes floors that are an hour older
   * still. Default 86400000.
   */
  readonly maxTokenAgeMs?: number | undefined;
  /** Loads the package of a store's client. Default: Node's `require`. */
  readonly load?: Load | undefined;
}

/** Node's `require`. */
export const loadPackage: Load = createRequire(__filename);

/** Loads an optional peer dependency: `undefined` if it is not installed; an installed package that is broken throws. */
export function loadIfInstalled(load: Load, name: string): unknown {
  try {
    return load(name);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** A store's URL, and Tillgate's own parameters of its query. */
export interface StoreUrl {
  /** Without Tillgate's parameters, which the store's client does not know. */
  readonly url: string;
  /** Name of the sorted set or table. */
  readonly place: string | undefined;
  /** `sentinel=on` or `off`; on by default. */
  readonly sentinel: boolean;
}

/**
 * Removes Tillgate's parameters from the query of a store's URL: `sentinel`, and the name of the sorted set or table.
 *
 * @throws TypeError when the URL or `sentinel` is wrong; the message does not repeat the URL
 */
export function readStoreUrl(url: string, scheme: string, placeParameter: string): StoreUrl {
  // Node's error repeats its input, and with it the password.
  if (!URL.canParse(url)) throw new TypeError(`generations: the ${scheme}: URL is not valid`);
  const parsed = new URL(url);
  const query = parsed.searchParams;
  const place = query.get(placeParameter) ?? undefined;
  const sentinel = query.get('sentinel') ?? 'on';
  if (sentinel !== 'on' && sentinel !== 'off') {
    throw new TypeError(`generations: "sentinel" in the ${scheme}: URL must be on or off`);
  }
  if (place === undefined && !query.has('sentinel')) return { url, place, sentinel: true };
  query.delete(placeParameter);
  query.delete('sentinel');
  return { url: parsed.href, place, sentinel: sentinel === 'on' };
}
