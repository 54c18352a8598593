import { isUtf8 } from 'node:buffer';

/**
 * Parses a JSON object from bytes, more strictly than `JSON.parse`: valid UTF-8 without a byte order mark, an object
 * at the top, and no member name twice in one object (RFC 7515 section 4, RFC 7519 section 4: names must be unique,
 * because two parsers may disagree about which one counts).
 *
 * @throws SyntaxError when the bytes are anything else; the message is for operators only.
 */
export function parseJsonObject(bytes: Buffer): Record<string, unknown> {
  if (!isUtf8(bytes)) throw new SyntaxError('expected UTF-8');
  // A byte order mark stays in the text, where JSON.parse refuses it.
  const text = bytes.toString('utf8');
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError('expected a JSON object');
  }
  // Of two members with one name JSON.parse keeps the last: then the text has more members than the value.
  if (membersIn(text) !== membersOf(value)) throw new SyntaxError('a member name occurs twice');
  return value as Record<string, unknown>;
}

/** Freezes a JSON value deeply. Iterates instead of recursing, because a payload may be nested deeper than the stack. */
export function freezeDeep<Value>(value: Value): Value {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    for (const member of Object.values(Object.freeze(next)) as unknown[]) {
      if (typeof member === 'object') open.push(member);
    }
  }
  return value;
}

const QUOTE = '"';
const COLON = 58;
const BACKSLASH = 92;
const SPACE = 32;

/** Counts the members in a text that JSON.parse has accepted: the strings that a colon follows. */
function membersIn(text: string): number {
  let count = 0;
  for (let start = text.indexOf(QUOTE); start >= 0;) {
    let after = endOfString(text, start) + 1;
    while (text.charCodeAt(after) <= SPACE) after++;
    if (text.charCodeAt(after) === COLON) count++;
    start = text.indexOf(QUOTE, after);
  }
  return count;
}

/** End of the string that begins at `start`: the first quote after an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); ; end = text.indexOf(QUOTE, end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before--;
    if ((end - before) % 2 === 0) return end;
  }
}

/** Counts the members of a value, nested ones included. */
function membersOf(value: object): number {
  const open: object[] = [value];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const members: readonly unknown[] = Object.values(next);
    if (!Array.isArray(next)) count += members.length;
    for (const member of members) if (typeof member === 'object' && member !== null) open.push(member);
  }
  return count;
}
