const MAX_SEGMENT = 64;
const MAX_PATH = 512;

/**
 * The path of a request target as a log may show it: without scheme, user and host, without query and fragment, and
 * without anything that can be a token. Some callers put one there by mistake, and no token is ever logged.
 *
 * @example
 * ```ts
 * import { loggablePath } from 'tillgate/app';
 *
 * console.log(loggablePath('/v1/orders/ord_0001?access_token=x')); // /v1/orders/ord_0001
 * ```
 */
export function loggablePath(target: string): string {
  const [path = ''] = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  // No id of ours is so long, every token is: percent-encoded, opaque, or only a part of one.
  const short = path.replace(/[^/]+/g, (segment) => (segment.length > MAX_SEGMENT ? `[${segment.length}]` : segment));
  return short.replace(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '[token]').slice(0, MAX_PATH);
}
