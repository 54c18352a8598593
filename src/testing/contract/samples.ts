import { isObject } from 'tillgate/internal';
import { dereference } from '../openapi/document';
import type { LocatedOperation } from '../openapi/document';
import type { ApiRequest } from './responses';

/** Values of one request, used instead of generated ones: an existing id, a meaningful body. */
export interface SampleRequest {
  /** Parameters of the path, by name. */
  readonly path?: Readonly<Record<string, string | number>> | undefined;
  /** Parameters of the query, by name. Optional ones are sent only when named here. */
  readonly query?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON, or as a form where the document has no JSON; a string is sent as it is. */
  readonly body?: unknown;
}

const FORM = 'application/x-www-form-urlencoded';

/**
 * Makes the request of an operation, good except for its missing token: from the given values, else from examples and
 * schemas of the document.
 *
 * @throws TypeError when no value can be generated; it names the parameter or the body
 */
export function prepareRequest(document: object, at: LocatedOperation, given: SampleRequest): ApiRequest {
  // A parameter of an operation replaces that of its path.
  const parameters = [...new Map(at.parameters.map((one) => [`${one.in} ${one.name}`, one])).values()];

  function valuesOf(place: 'path' | 'query' | 'header', own: Readonly<Record<string, unknown>> = {}) {
    const missing = parameters.filter((one) => one.in === place && one.required && !(one.name in own));
    const samples = missing.map((one) => [one.name, exampleOf(document, one, one.name)]);
    return { ...(Object.fromEntries(samples) as object), ...own } as Readonly<Record<string, unknown>>;
  }

  const path = valuesOf('path', given.path);
  const filled = at.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(valuesOf('query', given.query))) {
    for (const one of [value].flat()) query.append(name, String(one));
  }
  const { type, body } = bodyOf(document, at, given);
  const contentType = type !== undefined && { 'content-type': type };
  return {
    method: at.method,
    target: query.size === 0 ? filled : `${filled}?${query.toString()}`,
    headers: { ...texts(valuesOf('header')), ...contentType, ...given.headers },
    body,
  };
}

function bodyOf(document: object, { operation }: LocatedOperation, given: SampleRequest) {
  const requestBody = dereference(document, operation.requestBody);
  if (!isObject(requestBody) || !isObject(requestBody['content'])) {
    return { type: undefined, body: given.body === undefined ? undefined : JSON.stringify(given.body) };
  }
  const types = Object.keys(requestBody['content']);
  const type = types.find((name) => /^application\/(.+\+)?json$/.test(name)) ?? types[0] ?? 'application/json';
  const media = requestBody['content'][type];
  const value = 'body' in given ? given.body : exampleOf(document, media, 'the body');
  if (value === undefined) return { type: undefined, body: undefined };
  if (typeof value === 'string') return { type, body: value };
  return { type, body: type === FORM ? new URLSearchParams(texts(value)).toString() : JSON.stringify(value) };
}

/** OpenAPI 3.1 sections 4.8.12 and 4.8.14: the example, the first of the examples, else a value of the schema. */
function exampleOf(document: object, holder: unknown, what: string): unknown {
  try {
    const found = dereference(document, holder);
    const { example, examples, schema } = isObject(found) ? found : {};
    if (example !== undefined) return example;
    const first = dereference(document, isObject(examples) ? Object.values(examples)[0] : undefined);
    return isObject(first) && 'value' in first ? first['value'] : sampleOf(document, schema);
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw new TypeError(`cannot generate a value for ${what} (${found}); give one in "requests"`, { cause: error });
  }
}

function texts(values: unknown): Record<string, string> {
  return isObject(values) ? Object.fromEntries(Object.entries(values).map(([name, one]) => [name, String(one)])) : {};
}

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

/** Tried for a pattern after the formats: ids, a time of the day, a color, a phone number, a version, runs of one character. */
const TEXTS = [
  ...['sample', 'sample-1', 'sample_1', 'a1', 'A1', '12:00', '#000000', '+441632960000', '1.0.0'],
  ...Object.values(FORMATS),
  ...['a', 'A', '1', '0'].flatMap((letter) => Array.from({ length: 40 }, (_, index) => letter.repeat(index + 1))),
];

/**
 * Generates a small value that a schema allows, the same on every call: its example, default, constant or first choice,
 * else only what is required.
 *
 * @throws TypeError when it finds none
 */
function sampleOf(document: object, schema: unknown, depth = 0): unknown {
  const given = merge(document, schema, depth);
  const { example, examples, default: fallback, const: constant, enum: choices } = given;
  const named = [example, list(examples)[0], fallback, constant, list(choices)[0]].find((value) => value !== undefined);
  if (named !== undefined) return named;
  const sample = (inner: unknown): unknown => sampleOf(document, inner, depth + 1);
  switch (typeOf(given)) {
    case 'object':
      return sampleObject(given, sample);
    case 'array':
      return Array.from({ length: number(given['minItems'], 0) }, () => sample(given['items']));
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

/** Follows references, and merges `allOf` and the first alternatives of `oneOf` and `anyOf` into one schema. */
function merge(document: object, schema: unknown, depth: number): Schema {
  if (depth > MAX_DEPTH) throw new TypeError('a schema that requires itself');
  const { allOf, oneOf, anyOf, ...own } = record(dereference(document, schema));
  const parts = [...list(allOf), ...list(oneOf).slice(0, 1), ...list(anyOf).slice(0, 1)];
  return parts
    .map((part) => merge(document, part, depth + 1))
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

function typeOf({ type, properties, items }: Schema): unknown {
  const types = [type].flat();
  const named = types.find((one) => one !== 'null') ?? types[0];
  if (named !== undefined) return named;
  if (Object.keys(record(properties)).length > 0) return 'object';
  return items === undefined ? undefined : 'array';
}

function sampleObject({ properties, required, minProperties }: Schema, sample: (schema: unknown) => unknown): object {
  const known = record(properties);
  const names = new Set(list(required).map(String));
  for (const name of Object.keys(known)) {
    if (names.size < number(minProperties, 0)) names.add(name);
  }
  return Object.fromEntries([...names].map((name) => [name, sample(known[name])]));
}

function sampleNumber({ type, minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf }: Schema): number {
  const step = number(multipleOf, type === 'integer' ? 1 : 0.5);
  const low = Math.max(number(minimum, -Infinity), number(exclusiveMinimum, -Infinity) + step);
  const high = Math.min(number(maximum, Infinity), number(exclusiveMaximum, Infinity) - step);
  const start = Math.min(Math.max(step, low), high);
  const up = Math.ceil(start / step) * step;
  return up <= high ? up : Math.floor(start / step) * step;
}

function sampleText({ format, pattern, minLength, maxLength }: Schema): string {
  const [shortest, longest] = [number(minLength, 0), number(maxLength, Infinity)];
  const known = typeof format === 'string' ? FORMATS[format] : undefined;
  const padded = 'sample'.padEnd(shortest, 'a').slice(0, longest);
  if (typeof pattern !== 'string') return known ?? padded;
  const expression = new RegExp(pattern, 'u');
  const fits = (text: string): boolean => expression.test(text) && text.length >= shortest && text.length <= longest;
  const found = [known ?? padded, padded, ...TEXTS].find(fits);
  if (found === undefined) throw new TypeError(`no known string matches the pattern ${pattern}`);
  return found;
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
