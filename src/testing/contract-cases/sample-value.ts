import { isObject } from '../../core/objects';
import { dereference } from './references';

/** A JSON Schema. */
type Schema = Readonly<Record<string, unknown>>;

/** Deeper schemas are taken to require themselves. */
const MAX_DEPTH = 24;

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T12:00:00Z',
  time: '12:00:00Z',
  duration: 'PT1H',
  email: 'sample@example.com',
  hostname: 'sample.example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/sample',
  'uri-reference': '/sample',
  uuid: '00000000-0000-4000-8000-000000000001',
};

/** Tried for a pattern: a word, a time, a date, an id, a color, a phone number, a version. */
const TEXTS = [
  'sample',
  '12:00',
  '2026-01-01',
  'sample-1',
  'sample_1',
  'a1',
  'A1',
  '#000000',
  '+441632960000',
  '1.0.0',
];
const LETTERS = ['a', 'A', '1', '0'];
const LONGEST_RUN = 40;

/**
 * Generates a small value that a schema allows, the same on every call: its example, default, constant or first choice,
 * else only what is required.
 *
 * @throws TypeError when it finds none
 */
export function sampleOf(document: object, schema: unknown): unknown {
  return sample(schema, 0);

  function sample(unresolved: unknown, depth: number): unknown {
    if (depth > MAX_DEPTH) throw new TypeError('a schema that requires itself');
    const given = merge(dereference(document, unresolved), depth);
    const { example, examples, default: fallback, const: constant, enum: choices } = given;
    const named = [example, first(examples), fallback, constant, first(choices)].find((value) => value !== undefined);
    return named === undefined ? make(given, depth) : named;
  }

  /** Merges `allOf` and the first alternatives of `oneOf` and `anyOf` into one schema. */
  function merge(schema: unknown, depth: number): Schema {
    if (!isObject(schema)) return {};
    const { allOf, oneOf, anyOf, ...own } = schema;
    const parts = [...list(allOf), ...list(oneOf).slice(0, 1), ...list(anyOf).slice(0, 1)];
    if (depth > MAX_DEPTH) throw new TypeError('a schema that requires itself');
    return parts
      .map((part) => merge(dereference(document, part), depth + 1))
      .reduce(
        (merged, part) => ({
          ...part,
          ...merged,
          properties: { ...record(part['properties']), ...record(merged['properties']) },
          required: [...list(part['required']), ...list(merged['required'])],
        }),
        own,
      );
  }

  function make(schema: Schema, depth: number): unknown {
    switch (typeOf(schema)) {
      case 'object':
        return makeObject(schema, depth);
      case 'array':
        return Array.from({ length: number(schema['minItems'], 0) }, () => sample(schema['items'], depth + 1));
      case 'integer':
      case 'number':
        return makeNumber(schema);
      case 'boolean':
        return true;
      case 'null':
        return null;
      default:
        return makeText(schema);
    }
  }

  function makeObject({ properties, required, minProperties }: Schema, depth: number): object {
    const known = record(properties);
    const names = new Set(list(required).map(String));
    for (const name of Object.keys(known)) {
      if (names.size < number(minProperties, 0)) names.add(name);
    }
    return Object.fromEntries([...names].map((name) => [name, sample(known[name], depth + 1)]));
  }
}

function typeOf(schema: Schema): unknown {
  const type = [schema['type']].flat().find((one) => one !== 'null') ?? first([schema['type']].flat());
  if (type !== undefined) return type;
  if (Object.keys(record(schema['properties'])).length > 0) return 'object';
  return 'items' in schema ? 'array' : undefined;
}

function makeNumber({ type, minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf }: Schema): number {
  const step = number(multipleOf, type === 'integer' ? 1 : 0.5);
  const low = Math.max(number(minimum, -Infinity), number(exclusiveMinimum, -Infinity) + step);
  const high = Math.min(number(maximum, Infinity), number(exclusiveMaximum, Infinity) - step);
  const start = Math.min(Math.max(step, low), high);
  const up = Math.ceil(start / step) * step;
  return up <= high ? up : Math.floor(start / step) * step;
}

function makeText({ format, pattern, minLength, maxLength }: Schema): string {
  const [shortest, longest] = [number(minLength, 0), number(maxLength, Infinity)];
  const known = typeof format === 'string' ? FORMATS[format] : undefined;
  const padded = 'sample'.padEnd(shortest, 'a').slice(0, longest);
  if (typeof pattern !== 'string') return known ?? padded;
  const expression = new RegExp(pattern, 'u');
  const runs = LETTERS.flatMap((letter) => {
    return Array.from({ length: LONGEST_RUN }, (_, index) => letter.repeat(index + 1));
  });
  const found = [...(known === undefined ? [] : [known]), padded, ...TEXTS, ...runs].find((text) => {
    return expression.test(text) && text.length >= shortest && text.length <= longest;
  });
  if (found === undefined) throw new TypeError(`no known string matches the pattern ${pattern}`);
  return found;
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? (value[0] as unknown) : undefined;
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
