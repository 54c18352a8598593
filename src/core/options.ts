import { closest, distance } from 'fastest-levenshtein';
import { consoleLogger } from './logger';
import type { Logger } from './logger';
import { ownMembers } from './objects';
import { loggableUrl } from './urls';

/** Reads the options of one factory; every mistake is a `TypeError` that names the option, what was got and what is expected. */
export interface OptionReader<Key extends string> {
  has(key: Key): boolean;
  string(key: Key): string | undefined;
  boolean(key: Key, fallback: boolean): boolean;
  /** A finite number within the bounds, both inclusive. `unit` goes into the message. */
  number(key: Key, fallback: number, bounds: NumberBounds): number;
  oneOf<Choice extends string>(key: Key, choices: readonly Choice[], fallback: Choice): Choice;
  callable<Value>(key: Key, fallback: Value): Value;
  /** Default: the console. */
  logger(key: Key): Logger;
  /** Throws a `TypeError` about one option. */
  refuse(key: Key, expected: string): never;
}

export interface NumberBounds {
  readonly unit: string;
  readonly min: number;
  readonly max?: number;
  readonly integer?: boolean;
}

const LOGGER_METHODS = ['info', 'warn', 'error'] as const satisfies readonly (keyof Logger)[];

/**
 * Opens the options of `factory` for reading.
 *
 * @param parent - the option whose value `options` is, for messages: `"introspection.url"`
 * @throws TypeError when `options` is not an object or has a key that is not in `known`.
 */
export function readOptions<Key extends string>(
  factory: string,
  options: unknown,
  known: readonly Key[],
  parent = '',
): OptionReader<Key> {
  const prefix = parent === '' ? '' : `${parent}.`;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const expected = parent === '' ? 'expected an options object' : `option "${parent}" must be an object`;
    throw new TypeError(`${factory}(): ${expected}, got ${describe(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key as Key)) {
      throw new TypeError(`${factory}(): unknown option ${JSON.stringify(prefix + key)}${didYouMean(key, known)}`);
    }
  }
  const values = ownMembers(options) as Record<Key, unknown>;

  function refuse(key: Key, expected: string): never {
    throw new TypeError(`${factory}(): option "${prefix}${key}" must be ${expected}, got ${describe(values[key])}`);
  }
  return {
    refuse,
    has: (key) => values[key] !== undefined,
    string(key) {
      const value = values[key];
      if (value === undefined) return undefined;
      if (typeof value !== 'string' || value === '') refuse(key, 'a non-empty string');
      return value;
    },
    boolean(key, fallback) {
      const value = values[key] ?? fallback;
      if (typeof value !== 'boolean') refuse(key, 'true or false');
      return value;
    },
    number(key, fallback, bounds) {
      const { unit, min, max = Number.MAX_SAFE_INTEGER, integer = false } = ownMembers(bounds);
      const value = values[key] ?? fallback;
      const fits = typeof value === 'number' && value >= min && value <= max && (!integer || Number.isInteger(value));
      if (!fits) refuse(key, `${integer ? 'a whole number' : 'a number'} of ${unit} from ${min} to ${max}`);
      return value;
    },
    oneOf(key, choices, fallback) {
      const value = values[key] ?? fallback;
      const choice = choices.find((candidate) => candidate === value);
      if (choice === undefined) refuse(key, `one of ${choices.join(', ')}`);
      return choice;
    },
    callable<Value>(key: Key, fallback: Value): Value {
      const value = values[key] ?? fallback;
      if (typeof value !== 'function') refuse(key, 'a function');
      return value as Value;
    },
    logger(key) {
      const value = (values[key] === undefined ? consoleLogger : values[key]) as Logger | null;
      if (LOGGER_METHODS.every((method) => typeof value?.[method] === 'function')) return value as Logger;
      return refuse(key, 'an object with the methods info, warn and error');
    },
  };
}

/** `, did you mean "x"?` when a known name is close, else the list of what is known. */
export function didYouMean(name: string, known: readonly string[]): string {
  const candidate = startedBy(name, known) ?? closest(name, [...known]);
  const near = candidate && isNear(name, candidate) ? candidate : undefined;
  return near ? `; did you mean "${near}"?` : `; known are ${known.join(', ')}`;
}

/** The shortest name that begins with `name`, such as maxTokenAgeSeconds for maxTokenAge: the edit distance is too large. */
function startedBy(name: string, known: readonly string[]): string | undefined {
  if (name.length < 3) return undefined;
  const longer = known.filter((one) => one.toLowerCase().startsWith(name.toLowerCase()));
  return longer.sort((one, other) => one.length - other.length)[0];
}

function isNear(name: string, candidate: string): boolean {
  const [a, b] = [name.toLowerCase(), candidate.toLowerCase()];
  return a.includes(b) || b.includes(a) || distance(a, b) <= Math.max(2, Math.floor(b.length / 3));
}

/** `Array.isArray` that keeps the members unknown, so that they have to be looked at. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Names a value for an error message without spilling it: short strings in quotes, else its type. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`;
  if (typeof value === 'string') return describeString(value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined) return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A URL can hold a secret in its user info or query. */
function describeString(value: string): string {
  const shown = /^[a-z][a-z\d+.-]*:[/\\]/i.test(value) ? loggableUrl(value) : value;
  return JSON.stringify(shown.length > 60 ? `${shown.slice(0, 57)}...` : shown);
}
