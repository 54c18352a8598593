import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { isObject } from '../core/objects';

/** A JSON object as the parsers of this file return it: without a prototype. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Parses JSON from bytes, more strictly than `JSON.parse`: valid UTF-8 without a byte order mark, and no member name
 * twice in one object (RFC 7515 section 4, RFC 7519 section 4: names must be unique, because two parsers may disagree
 * about which one counts). The objects of the value have no prototype: members can be read without looking whether a
 * polluted one has added them.
 *
 * @throws SyntaxError when the bytes are anything else; the message is for operators only.
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new SyntaxError('expected UTF-8');
  // A byte order mark stays in the text, where JSON.parse refuses it.
  const text = bytes.toString('utf8');
  const parsed: unknown = JSON.parse(text);
  const { count, escaped } = membersIn(text);
  const { value, members } = escaped.length > 0 ? parseWithEscapedNames(text, escaped) : withoutPrototypes(parsed);
  // Of two members with one name JSON.parse keeps the last: then the text has more members than the value.
  if (count !== members) throw new SyntaxError(TWICE);
  return value;
}

/** As `parseJson()`, for an object. */
export function parseJsonObject(bytes: Buffer): JsonObject {
  const value = parseJson(bytes);
  if (!isObject(value)) throw new SyntaxError('expected a JSON object');
  return value;
}

const TWICE = 'a member name occurs twice';
const QUOTE = '"';
const COLON = 58;
const BACKSLASH = 92;
const SPACE = 32;

/** Begins the names that replace those with an escape. One for the process, which nobody else knows: texts do not have it. */
let mark = newMark();

function newMark(): string {
  return randomBytes(9).toString('base64url');
}

/** Where a text has a string, with its quotes. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the members in a text that JSON.parse has accepted, which are the strings that a colon follows: how many there are,
 * and which names have an escape.
 */
function membersIn(text: string): { readonly count: number; readonly escaped: readonly Range[] } {
  let count = 0;
  const escaped: Range[] = [];
  const hasEscapes = text.includes('\\');
  for (let at = text.indexOf(QUOTE); at >= 0; at = text.indexOf(QUOTE, at)) {
    const start = at;
    // A string ends at the first quote after an even number of backslashes.
    let backslashes: number;
    do {
      at = text.indexOf(QUOTE, at + 1);
      for (backslashes = 0; text.charCodeAt(at - 1 - backslashes) === BACKSLASH;) backslashes++;
    } while (backslashes % 2 === 1);
    const end = ++at;
    while (text.charCodeAt(at) <= SPACE) at++;
    if (text.charCodeAt(at) !== COLON) continue;
    count++;
    if (hasEscapes && text.slice(start, end).includes('\\')) escaped.push({ start, end });
  }
  return { count, escaped };
}

/**
 * Parses a text in which member names have escapes. JSON.parse of Node 24 and 26 can read such a name as another one that
 * was parsed before, anywhere in the process: after `{"a":1,"\\":2}` it reads `{"a":1,"\u0061":2}` as the former
 * (nodejs/node issue 63785). So other names without an escape replace them while the text is parsed.
 */
function parseWithEscapedNames(text: string, escaped: readonly Range[]): ReturnType<typeof withoutPrototypes> {
  while (text.includes(mark)) mark = newMark();
  let marked = '';
  let done = 0;
  const names = new Map<string, string>();
  for (const { start, end } of escaped) {
    const standIn = mark + names.size;
    names.set(standIn, JSON.parse(text.slice(start, end)) as string);
    marked += `${text.slice(done, start)}"${standIn}"`;
    done = end;
  }
  return withoutPrototypes(JSON.parse(marked + text.slice(done)), names);
}

/**
 * Copies the objects of a parsed value to ones without a prototype, and counts their members. Iterates instead of
 * recursing, because a payload may be nested deeper than the stack.
 *
 * @param standIns - the true name for each name that replaces one with an escape
 */
function withoutPrototypes(
  parsed: unknown,
  standIns?: ReadonlyMap<string, string>,
): { readonly value: unknown; readonly members: number } {
  const root: Record<string, unknown> = { parsed };
  const nested = typeof parsed === 'object' && parsed !== null ? [{ holder: root, name: 'parsed' }] : [];
  let members = 0;
  // The list grows while it is read.
  for (const { holder, name } of nested) {
    const original = holder[name] as Record<string, unknown>;
    const isArray = Array.isArray(original);
    // It has none before its first member, so objects with the same names share a hidden class, frozen or not.
    // `Object.create(null)` makes a hash table, and V8 gives each frozen one a class of its own.
    const copy = isArray ? original : (Object.setPrototypeOf({}, null) as Record<string, unknown>);
    for (const each of Object.keys(original)) {
      const member = original[each];
      const own = standIns?.get(each) ?? each;
      if (!isArray) {
        if (own in copy) throw new SyntaxError(TWICE);
        copy[own] = member;
        members++;
      }
      if (typeof member === 'object' && member !== null) nested.push({ holder: copy, name: own });
    }
    holder[name] = copy;
  }
  return { value: root['parsed'], members };
}

/** Freezes what was parsed, to its depth. */
export function freezeJson<Value>(value: Value): Value {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    // What is not an object counts as frozen.
    if (Object.isFrozen(next)) continue;
    Object.freeze(next);
    for (const member of Object.values(next as object)) if (!Object.isFrozen(member)) open.push(member);
  }
  return value;
}
