/** A place in a document, by the names that lead to it, as a fragment of a URI: escaped (RFC 6901 section 3), then percent-encoded (section 6). */
export function toFragment(names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name.replace(/~/g, '~0').replace(/\//g, '~1'))}`).join('');
}
