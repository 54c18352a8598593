import { isUtf8 } from 'node:buffer';
import { isObject } from '../core/objects';

/** A JSON object as the parsers of this file return it: deeply frozen, and without a prototype. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Parses JSON from bytes, more strictly than `JSON.parse`: valid UTF-8 without a byte order mark, and no member name
 * twice in one object (RFC 7515 section 4, RFC 7519 section 4: names must be unique, because two parsers may disagree
 * about which one counts). The value is deeply frozen, and its objects have no prototype: members can be read without
 * looking whether a polluted one has added them.
 *
 * @throws SyntaxError when the bytes are anything else; the message is for operators only.
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new SyntaxError('expected UTF-8');
  // A byte order mark stays in the text, where JSON.parse refuses it.
  const text = bytes.toString('utf8');
  const value: unknown = JSON.parse(text);
  // Of two members with one name JSON.parse keeps the last: then the text has more members than the value.
  if (membersIn(text) !== seal(value)) throw new SyntaxError('a member name occurs twice');
  return value;
}

/** As `parseJson()`, for an object. */
export function parseJsonObject(bytes: Buffer): JsonObject {
  const value = parseJson(bytes);
  if (!isObject(value)) throw new SyntaxError('expected a JSON object');
  return value;
}

const QUOTE = '"';
const COLON = 58;
const BACKSLASH = 92;
const SPACE = 32;

/** Counts the members in a text that JSON.parse has accepted: the strings that a colon follows. */
function membersIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf(QUOTE); at >= 0; at = text.indexOf(QUOTE, at)) {
    // A string ends at the first quote after an even number of backslashes.
    let backslashes: number;
    do {
      at = text.indexOf(QUOTE, at + 1);
      for (backslashes = 0; text.charCodeAt(at - 1 - backslashes) === BACKSLASH;) backslashes++;
    } while (backslashes % 2 === 1);
    at++;
    while (text.charCodeAt(at) <= SPACE) at++;
    if (text.charCodeAt(at) === COLON) count++;
  }
  return count;
}

/**
 * Freezes a value deeply, takes the prototypes of its objects away, and counts its members. Iterates instead of
 * recursing, because a payload may be nested deeper than the stack.
 */
function seal(value: unknown): number {
  const open: unknown[] = [value];
  let count = 0;
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    const members: readonly unknown[] = Object.values(next);
    if (!Array.isArray(next)) {
      Object.setPrototypeOf(next, null);
      count += members.length;
    }
    Object.freeze(next);
    for (const member of members) if (typeof member === 'object') open.push(member);
  }
  return count;
}
