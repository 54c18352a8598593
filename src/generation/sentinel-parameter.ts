/**
 * Reads `sentinel=on|off` from the query of a source's URL; default on.
 *
 * @throws TypeError when it is anything else
 */
export function readSentinelParameter(query: URLSearchParams): boolean {
  const value = query.get('sentinel') ?? 'on';
  if (value !== 'on' && value !== 'off') throw new TypeError('generations: "sentinel" in the URL must be on or off');
  return value === 'on';
}
