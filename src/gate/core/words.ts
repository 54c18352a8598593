import type * as Levenshtein from 'fastest-levenshtein';
import { loggableUrl } from './urls';

/** Names a value for an error message without spilling it: strings in quotes, up to `longest` characters, else its type. */
export function describe(value: unknown, longest = 60): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`;
  if (typeof value === 'string') {
    // A URL can hold a secret in its user info or query.
    const shown = /^[a-z][a-z\d+.-]*:[/\\]/i.test(value) ? loggableUrl(value) : value;
    return JSON.stringify(shown.length > longest ? `${shown.slice(0, longest - 3)}...` : shown);
  }
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined) return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** `, did you mean "x"?` when a known name is close, else the list of what is known. */
export function didYouMean(name: string, known: readonly string[]): string {
  return nearest(name, known) ?? `; known are ${known.join(', ')}`;
}

/** `; did you mean "x"?`, or `undefined` where no known name is close. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded with the first misspelt name: most processes never need it
  const { closest, distance } = require('fastest-levenshtein') as typeof Levenshtein;
  // maxTokenAge is far from maxTokenAgeSeconds by its edit distance.
  const longer = known.filter((one) => name.length >= 3 && one.toLowerCase().startsWith(name.toLowerCase()));
  const [shortest] = longer.sort((one, other) => one.length - other.length);
  const candidate = shortest ?? closest(name, [...known]);
  const isNear = (a: string, b: string): boolean =>
    a.includes(b) || b.includes(a) || distance(a, b) <= Math.max(2, Math.floor(b.length / 3));
  return candidate && isNear(name.toLowerCase(), candidate.toLowerCase())
    ? `; did you mean "${candidate}"?`
    : undefined;
}
