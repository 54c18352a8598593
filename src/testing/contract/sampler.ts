import type RandExp from 'randexp';
import { attempt, isObject } from 'tillgate/internal';
import { dereference } from '../openapi/document';

/** A JSON Schema. */
type Schema = Readonly<Record<string, unknown>>;

/** Deeper schemas are taken to require themselves. */
const MAX_DEPTH = 24;

const FORMATS: Readonly<Record<string, string>> = {
  ...{ date: '2026-01-01', 'date-time': '2026-01-01T12:00:00Z', time: '12:00:00Z', duration: 'PT1H' },
  ...{ email: 'sample@example.com', hostname: 'sample.example.com', ipv4: '192.0.2.1' },
  ...{ ipv6: '2001:db8::1', uri: 'https://example.com/sample', url: 'https://example.com/sample' },
  ...{ 'uri-reference': '/sample', 'uri-template': '/sample/{id}', 'json-pointer': '/sample' },
  ...{ 'relative-json-pointer': '0', regex: '^sample$', byte: 'c2FtcGxl' },
  ...{ uuid: '00000000-0000-4000-8000-000000000001' },
};

/** Tried for a pattern before one is made from it: values that mean something, and runs of one character. */
const TEXTS = [
  ...['sample', 'sample-1', 'sample_1', 'a1', 'A1', '12:00', '#000000', '+441632960000', '1.0.0'],
  ...Object.values(FORMATS),
  ...['a', 'A', '1', '0'].flatMap((letter) => Array.from({ length: 40 }, (_, index) => letter.repeat(index + 1))),
];
const ATTEMPTS = 50;

/** How a value is generated. */
interface Sampling {
  readonly document: object;
  /** Members with this mark are left out: `readOnly` of a request. */
  readonly without: 'readOnly' | 'writeOnly';
  /** Whether examples and defaults count; without them only the other keywords do. */
  readonly withExamples: boolean;
  readonly depth: number;
}

/**
 * Generates a small value that a schema allows, the same on every call: its example, default, constant or first choice,
 * else only what is required.
 *
 * @throws TypeError when it finds none
 */
export function sampleOf(
  document: object,
  schema: unknown,
  { without = 'readOnly', withExamples = true }: Partial<Pick<Sampling, 'without' | 'withExamples'>> = {},
): unknown {
  return sample({ document, without, withExamples, depth: 0 }, schema);
}

/** The properties in the first media type of a request body or a response, or of the items of its list. */
export function propertiesOf(document: object, holder: unknown): Readonly<Record<string, Schema>> {
  const how = { document, without: 'readOnly', withExamples: false, depth: 0 } as const;
  const [media] = Object.values(record(record(dereference(document, holder))['content']));
  const { items, properties } = attempt(() => merge(how, record(media)['schema'])) ?? {};
  const known = items === undefined ? properties : attempt(() => merge(how, items))?.['properties'];
  return Object.fromEntries(
    Object.entries(record(known)).map(([name, one]) => [name, record(dereference(document, one))]),
  );
}

function sample(how: Sampling, schema: unknown): unknown {
  const given = merge(how, schema);
  const { example, examples, default: fallback, const: constant, enum: choices } = given;
  const examplesOf = how.withExamples ? [example, list(examples)[0], fallback] : [];
  const named = [constant, ...examplesOf, list(choices)[0]].find((value) => value !== undefined);
  if (named !== undefined && !(named === null && typeOf(given) !== 'null' && !isNullable(given))) {
    return isObject(named) ? withoutMarked(how, given, named) : named;
  }
  const inner = (one: unknown): unknown => sample({ ...how, depth: how.depth + 1 }, one);
  switch (typeOf(given)) {
    case 'object':
      return sampleObject(how, given, inner);
    case 'array':
      return sampleList(given, inner);
    case 'integer':
    case 'number':
      return sampleNumber(given);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return sampleText(given);
  }
}

/** Follows references, and merges `allOf` and the first possible alternatives of `oneOf` and `anyOf` into one schema. */
function merge(how: Sampling, schema: unknown): Schema {
  if (how.depth > MAX_DEPTH) throw new TypeError('a schema that requires itself');
  const target = dereference(how.document, schema);
  // Since 3.1 keywords beside a reference count too.
  const { $ref: _ref, ...beside } = record(schema);
  const { allOf, oneOf, anyOf, ...own } = target === schema ? record(schema) : { ...record(target), ...beside };
  const deeper = { ...how, depth: how.depth + 1 };
  const alternatives = [oneOf, anyOf].flatMap((choices) => firstPossible(deeper, own, list(choices)));
  const parts = [...list(allOf).map((part) => merge(deeper, part)), ...alternatives];
  return parts.reduce(join, own);
}

/** Both at once: the narrower limits of the two. */
function join(own: Schema, part: Schema): Schema {
  const limits = LIMITS.flatMap(([name, narrower]) =>
    typeof own[name] === 'number' && typeof part[name] === 'number'
      ? [[name, narrower(own[name], part[name])] as const]
      : [],
  );
  const choices = list(part['enum']).filter((one) => own['enum'] === undefined || list(own['enum']).includes(one));
  return {
    ...part,
    ...own,
    ...Object.fromEntries(limits),
    ...(choices.length > 0 && { enum: choices }),
    properties: { ...record(part['properties']), ...record(own['properties']) },
    required: [...list(part['required']), ...list(own['required'])],
  };
}

const LIMITS: readonly (readonly [name: string, narrower: (a: number, b: number) => number])[] = [
  ...['minimum', 'minLength', 'minItems', 'minProperties'].map((name) => [name, Math.max] as const),
  ...['maximum', 'maxLength', 'maxItems', 'maxProperties'].map((name) => [name, Math.min] as const),
];

/** The first alternative that does not require itself and fits the type; a discriminator names it (OpenAPI 3.1 section 4.8.25). */
function firstPossible(how: Sampling, own: Schema, choices: readonly unknown[]): readonly Schema[] {
  const { propertyName, mapping } = record(own['discriminator']);
  let problem: unknown;
  for (const choice of choices) {
    try {
      const merged = merge(how, choice);
      const isOther = own['type'] !== undefined && merged['type'] !== undefined && typeOf(own) !== typeOf(merged);
      if (isOther || (typeOf(merged) === 'null' && choices.length > 1)) continue;
      sample(how, merged);
      const reference = record(choice)['$ref'];
      if (typeof propertyName !== 'string' || typeof reference !== 'string') return [merged];
      const mapped = Object.entries(record(mapping)).find(
        ([, to]) => to === reference || reference.endsWith(`/${String(to)}`),
      );
      const name = mapped?.[0] ?? reference.split('/').at(-1);
      const properties = record(merged['properties']);
      const declared = record(dereference(how.document, properties[propertyName]));
      const tag = list(declared['enum'])[0] ?? declared['const'] ?? name;
      const required = [...list(merged['required']), propertyName];
      return [
        {
          ...merged,
          required,
          properties: { ...properties, [propertyName]: { ...declared, example: tag, enum: [tag] } },
        },
      ];
    } catch (error) {
      problem ??= error;
    }
  }
  if (problem !== undefined) throw problem as Error;
  return choices.length > 0 ? [record(dereference(how.document, choices[0]))] : [];
}

function typeOf({ type, properties, items, minLength, pattern, format }: Schema): unknown {
  const types = [type].flat();
  const named = types.find((one) => one !== 'null') ?? types[0];
  if (named !== undefined) return named;
  if (Object.keys(record(properties)).length > 0) return 'object';
  if (items !== undefined) return 'array';
  return minLength ?? pattern ?? format;
}

function isNullable({ nullable, type, enum: choices }: Schema): boolean {
  return nullable === true || [type].flat().includes('null') || (type === undefined && list(choices).includes(null));
}

function isMarked({ document, without }: Sampling, property: unknown): boolean {
  return record(dereference(document, property))[without] === true;
}

function withoutMarked(how: Sampling, { properties }: Schema, value: object): object {
  const known = record(properties);
  return Object.fromEntries(Object.entries(value).filter(([name]) => !isMarked(how, known[name])));
}

function sampleObject(how: Sampling, given: Schema, inner: (schema: unknown) => unknown): object {
  const known = record(given['properties']);
  const names = new Set(list(given['required']).map(String));
  const least = number(given['minProperties'], 0);
  for (const name of Object.keys(known)) if (names.size < least) names.add(name);
  for (let index = 1; names.size < least; index++) names.add(`sample${index}`);
  const { additionalProperties: others } = given;
  const members = [...names].filter((name) => !isMarked(how, known[name]));
  return Object.fromEntries(members.map((name) => [name, inner(known[name] ?? (isObject(others) ? others : {}))]));
}

function sampleList(
  { items, prefixItems, minItems, uniqueItems }: Schema,
  inner: (schema: unknown) => unknown,
): unknown {
  const first = list(prefixItems);
  const length = number(minItems, 0);
  const values = Array.from({ length }, (_, index) => inner(first[index] ?? items));
  return uniqueItems === true
    ? values.map((value, index) => (index === 0 ? value : another(value, index, items)))
    : values;
}

/** Another value of the same kind, for lists whose items differ. */
function another(value: unknown, index: number, items: unknown): unknown {
  const choices = list(record(items)['enum']);
  if (choices.length > index) return choices[index];
  if (typeof value === 'number') return value + index;
  return typeof value === 'string' ? value.slice(0, -1) + 'bcdefghijklmnopqrstuvwxyz'[index % 25] : value;
}

function sampleNumber({ type, minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf }: Schema): number {
  const step = number(multipleOf, type === 'integer' ? 1 : 0.5);
  // In OpenAPI 3.0 exclusive limits are flags.
  const least = exclusiveMinimum === true ? number(minimum, -Infinity) + step : number(minimum, -Infinity);
  const most = exclusiveMaximum === true ? number(maximum, Infinity) - step : number(maximum, Infinity);
  const low = Math.max(least, number(exclusiveMinimum, -Infinity) + step);
  const high = Math.min(most, number(exclusiveMaximum, Infinity) - step);
  const start = Math.min(Math.max(step, low), high);
  const up = Math.ceil(start / step) * step;
  if (up <= high) return up;
  const down = Math.floor(start / step) * step;
  return down >= low ? down : low;
}

function sampleText({ format, pattern, minLength, maxLength }: Schema): string {
  const [shortest, longest] = [number(minLength, 0), number(maxLength, Infinity)];
  const known = typeof format === 'string' ? FORMATS[format] : undefined;
  const isFitting = (text: string): boolean => text.length >= shortest && text.length <= longest;
  const padded = 'sample'.padEnd(shortest, 'a').slice(0, longest);
  if (typeof pattern !== 'string') return known !== undefined && isFitting(known) ? known : padded;
  const expression = readPattern(pattern);
  // Like every validator of JSON, not one in another language's syntax.
  if (!expression) return padded;
  const matches = (text: string): boolean => expression.test(text) && isFitting(text);
  const found = [known ?? padded, padded, ...TEXTS].find(matches) ?? textOf(expression, matches, shortest, longest);
  if (found === undefined) throw new TypeError(`no known string matches the pattern ${pattern}`);
  return found;
}

/** A pattern, with the flag `u` if it allows that (JSON Schema 2020-12 section 6.4 of its core); `undefined`: not ECMA-262. */
export function readPattern(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags);
    } catch {
      continue;
    }
  }
  return undefined;
}

/** A text made from a pattern, the same on every call. */
function textOf(expression: RegExp, matches: (text: string) => boolean, shortest: number, longest: number) {
  // Loaded with the first pattern that needs it.
  // eslint-disable-next-line @typescript-eslint/no-require-imports
  const Generator = require('randexp') as typeof RandExp;
  try {
    const generator = new Generator(expression.source);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      generator.max = attempt % 2 === 0 ? Math.min(longest, Math.max(shortest, attempt)) : shortest + attempt;
      let seed = attempt + 1;
      generator.randInt = (from, to) => {
        seed = (seed * 48_271) % 2_147_483_647;
        return from + (attempt === 0 ? 0 : seed % (1 + to - from));
      };
      const text = generator.gen();
      // A pattern without an end allows more.
      const found = [text, text.padEnd(shortest, 'a'), text.padEnd(shortest, '0')].find(matches);
      if (found !== undefined) return found;
    }
  } catch {
    // What the generator cannot read.
  }
  return undefined;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function record(value: unknown): Schema {
  return isObject(value) ? value : {};
}

function number(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}
