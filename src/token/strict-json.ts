/**
 * Parses a JSON object from bytes, more strictly than `JSON.parse`: valid UTF-8 without a byte order mark, an object
 * at the top, and no member name twice in one object (RFC 7515 section 4, RFC 7519 section 4: names must be unique,
 * because two parsers may disagree about which one counts).
 *
 * @throws SyntaxError or TypeError when the bytes are anything else; the message is for operators only.
 */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> {
  const text = utf8.decode(bytes);
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError('expected a JSON object');
  }
  refuseDuplicateMembers(text);
  return value as Record<string, unknown>;
}

// `ignoreBOM: true` keeps the mark in the text, where JSON.parse then refuses it.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A string with what follows it, or a bracket: all that matters in text that JSON.parse has already accepted. */
const STRUCTURE = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\]]/g;

function refuseDuplicateMembers(text: string): void {
  const open: (Set<string> | undefined)[] = [];
  for (const [token, string, colon] of text.matchAll(STRUCTURE)) {
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (string !== undefined && colon !== undefined) {
      const members = open.at(-1);
      // Compared as JSON.parse reads them: "a" and "\u0061" are the same name.
      const name = string.includes('\\') ? (JSON.parse(string) as string) : string.slice(1, -1);
      if (members?.has(name)) throw new SyntaxError('a member name occurs twice');
      members?.add(name);
    }
  }
}
