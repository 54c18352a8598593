import { createRequire } from 'node:module';
import type { Dependencies } from 'tillgate';
import { parseUrl } from 'tillgate/internal';

/** Dependencies of a log that is made from a URL. */
export interface StoreDependencies extends Pick<Dependencies, 'clock' | 'schedule'> {
  /** Loads the package of a store's client. Default: Node's `require`. */
  readonly load?: ((name: string) => unknown) | undefined;
}

/** Node's `require`. */
export const loadPackage: (name: string) => unknown = createRequire(__filename);

/**
 * Removes Tillgate's parameters, which the store's client does not know, from the query of a store's URL: `mark`, which is
 * on by default, and the name of the key or table.
 *
 * @throws TypeError when the URL or `mark` is wrong; the message does not repeat the URL
 */
export function readStoreUrl(
  url: string,
  scheme: string,
  placeParameter: string,
): { readonly url: string; readonly place: string | undefined; readonly mark: boolean } {
  // Node's error repeats its input, and with it the password.
  const parsed = parseUrl(url);
  if (!parsed) throw new TypeError(`generations: the ${scheme}: URL is not valid`);
  const query = parsed.searchParams;
  const place = query.get(placeParameter) ?? undefined;
  const mark = query.get('mark') ?? 'on';
  if (mark !== 'on' && mark !== 'off') {
    throw new TypeError(`generations: "mark" in the ${scheme}: URL must be on or off`);
  }
  if (place === undefined && !query.has('mark')) return { url, place, mark: true };
  query.delete(placeParameter);
  query.delete('mark');
  return { url: parsed.href, place, mark: mark === 'on' };
}
