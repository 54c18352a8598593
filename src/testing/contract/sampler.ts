import { isDeepStrictEqual } from 'node:util';
import { attempt, isObject } from 'tillgate/internal';
import { contentOf, dereference, record } from '../openapi/document';
import { sampleText } from './sample-texts';

/** A JSON Schema. */
type Schema = Readonly<Record<string, unknown>>;

/** Deeper schemas are taken to require themselves. */
const MAX_DEPTH = 24;
/** Values that are tried for a number, or for items that differ. */
const ATTEMPTS = 50;

/** How a value is generated. */
interface Sampling {
  readonly document: object;
  /** Members with this mark are left out: `readOnly` of a request. */
  readonly without: 'readOnly' | 'writeOnly';
  /** Whether examples and defaults count; without them only the other keywords do. */
  readonly withExamples: boolean;
  /** Another one of the values that a schema allows, for what only a validator can tell; 0: the smallest. */
  readonly variant: number;
  /** Whether a schema allows a value: asked where the value of one part excludes another part. */
  readonly isValid?: (schema: unknown, value: unknown) => boolean;
  readonly depth: number;
}

/** Variants that are tried: alternatives and types in another order, optional members too, other numbers and texts. */
export const TRIES = 24;
const ORDERS = 4;
const isWhole = ({ variant }: Sampling): boolean => Math.trunc(variant / ORDERS) % 2 === 1;
/** How far the value is from the smallest one. */
const shiftOf = ({ variant }: Sampling): number => Math.trunc(variant / (2 * ORDERS));
const differing = (how: Sampling, by: number): Sampling => ({ ...how, variant: how.variant + 2 * ORDERS * by });

function rotated<Item>(all: readonly Item[], { variant }: Sampling): readonly Item[] {
  const at = (variant % ORDERS) % Math.max(all.length, 1);
  return [...all.slice(at), ...all.slice(0, at)];
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
  how: Partial<Omit<Sampling, 'document' | 'depth'>> = {},
): unknown {
  return sample({ without: 'readOnly', withExamples: true, variant: 0, ...how, document, depth: 0 }, schema);
}

/** The schema of the first media type of a request body or a response. */
export function schemaIn(document: object, holder: unknown): unknown {
  const [media] = Object.values(contentOf(document, holder));
  return record(media)['schema'];
}

/** The properties of a schema, or of the items of its list. */
export function mergedSchema(
  document: object,
  schema: unknown,
): { readonly items: unknown; readonly properties: Readonly<Record<string, Schema>> } {
  const how = { document, without: 'readOnly', withExamples: false, variant: 0, depth: 0 } as const;
  const { items, properties } = attempt(() => merge(how, schema)) ?? {};
  const known = items === undefined ? properties : attempt(() => merge(how, items))?.['properties'];
  const all = Object.entries(record(known)).map(([name, one]) => [name, record(dereference(document, one))] as const);
  return { items, properties: Object.fromEntries(all) };
}

/** The properties in the first media type of a request body or a response, or of the items of its list. */
export function propertiesOf(document: object, holder: unknown): Readonly<Record<string, Schema>> {
  return mergedSchema(document, schemaIn(document, holder)).properties;
}

function sample(how: Sampling, schema: unknown): unknown {
  const { isValid } = how;
  const target = record(dereference(how.document, schema));
  if (!isValid || !EXCLUDING.some((name) => name in target)) return sampleOnce(how, schema);
  const variants = [how.variant, ...Array.from({ length: TRIES }, (_, variant) => variant)];
  for (const variant of variants) {
    const value = attempt(() => sampleOnce({ ...how, variant }, schema));
    if (value !== undefined && isValid(schema, value)) return value;
  }
  return sampleOnce(how, schema);
}

/** Keywords that no merged schema has: only a validator tells whether a value fits. */
const EXCLUDING = ['oneOf', 'not', 'if'];

function sampleOnce(how: Sampling, schema: unknown): unknown {
  const given = merge(how, schema);
  const { example, examples, default: fallback, enum: choices } = given;
  if ('const' in given) return given['const'];
  const examplesOf = how.withExamples ? [example, list(examples)[0], fallback] : [];
  const choice = list(choices)[shiftOf(how) % Math.max(list(choices).length, 1)];
  const named = [...examplesOf, choice].find((value) => value !== undefined);
  const type = typeOf(given, how);
  if (named !== undefined && !(named === null && type !== 'null' && !isNullable(given))) {
    return isObject(named) ? withoutMarked(how, given, named) : named;
  }
  const deeper = { ...how, depth: how.depth + 1 };
  switch (type) {
    case 'object':
      return sampleObject(deeper, given);
    case 'array':
      return sampleList(deeper, given);
    case 'integer':
    case 'number':
      return sampleNumber(given, type === 'integer', shiftOf(how));
    case 'boolean':
      return shiftOf(how) % 2 === 0;
    case 'null':
      return null;
    default:
      return sampleText(given, shiftOf(how));
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
  const alternatives = [oneOf, anyOf].flatMap((choices) => firstPossible(deeper, own, rotated(list(choices), how)));
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
  const [patterns, steps] = ['pattern', 'multipleOf'].map((name) =>
    [own, part].flatMap((one) => one[name] ?? []).flat(),
  );
  return {
    ...part,
    ...own,
    ...Object.fromEntries(limits),
    ...(choices.length > 0 && { enum: choices }),
    ...(patterns!.length > 1 && { pattern: patterns }),
    ...(steps!.length > 1 && { multipleOf: steps }),
    ...(own['items'] !== undefined && part['items'] !== undefined && { items: both(own['items'], part['items']) }),
    properties: withBoth(record(own['properties']), record(part['properties'])),
    required: [...new Set([...list(part['required']), ...list(own['required'])])],
  };
}

/** What two branches say about the same member counts together. */
function withBoth(own: Schema, part: Schema): Schema {
  const merged = Object.entries(own).map(([name, one]) => [name, name in part ? both(one, part[name]) : one] as const);
  return { ...part, ...Object.fromEntries(merged) };
}

function both(one: unknown, other: unknown): unknown {
  return one === other || other === true ? one : { allOf: [one, other] };
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
      const [ownTypes, types] = [own, merged].map(({ type }) => [type ?? []].flat());
      const isOther =
        ownTypes!.length > 0 && types!.length > 0 && !types!.some((type) => includesType(ownTypes!, type));
      if (isOther || (typeOf(merged, how) === 'null' && choices.length > 1)) continue;
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

/** `number` includes `integer` (JSON Schema 2020-12 section 6.1.1 of its validation). */
function includesType(types: readonly unknown[], type: unknown): boolean {
  return types.includes(type) || (type === 'integer' && types.includes('number'));
}

function typeOf({ type, properties, items, minLength, pattern, format }: Schema, how: Sampling): unknown {
  const types = [type].flat();
  const named =
    rotated(
      types.filter((one) => one !== 'null'),
      how,
    )[0] ?? types[0];
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

function sampleObject(how: Sampling, given: Schema): object {
  const known = record(given['properties']);
  const { additionalProperties: others, patternProperties, propertyNames } = given;
  const [pattern, ofPattern] = Object.entries(record(patternProperties))[0] ?? [];
  const naming = propertyNames ?? (others === false && pattern !== undefined ? { pattern } : undefined);
  const names = new Set(list(given['required']).map(String));
  const least = number(given['minProperties'], 0);
  for (const name of Object.keys(known)) if (names.size < least || isWhole(how)) names.add(name);
  for (let index = 0; names.size < least && index < MAX_DEPTH; index++) {
    const named = naming && sample(differing(how, index), naming);
    names.add(typeof named === 'string' ? named : `sample${index + 1}`);
  }
  const members = [...names].filter((name) => !isMarked(how, known[name]) && known[name] !== false);
  const rest = isObject(others) ? others : others === false ? (ofPattern ?? {}) : {};
  // An optional member that requires its parent stays out.
  return Object.fromEntries(
    members.flatMap((name) => {
      const isOptional = !list(given['required']).includes(name);
      const value =
        isOptional && isWhole(how) ? attempt(() => sample(how, known[name] ?? rest)) : sample(how, known[name] ?? rest);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function sampleList(how: Sampling, { items, prefixItems, minItems, maxItems, uniqueItems }: Schema): unknown {
  const first = list(prefixItems);
  const isEmpty = items === false || maxItems === 0 || !isWhole(how);
  const length = Math.max(number(minItems, 0), isEmpty ? 0 : 1);
  const values: unknown[] = [];
  for (let index = 0; values.length < length && index < length + ATTEMPTS; index++) {
    const isOther = uniqueItems === true && index > 0;
    const value = sample(
      isOther ? { ...differing(how, index), withExamples: false } : how,
      first[values.length] ?? items,
    );
    if (!uniqueItems || !values.some((one) => isDeepStrictEqual(one, value))) values.push(value);
  }
  return values;
}

/** A number within its limits that all steps divide, as ajv divides; the `shift`th of those that are found. */
function sampleNumber(schema: Schema, isInteger: boolean, shift: number): number {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf } = schema;
  const steps = [multipleOf].flat().filter((one) => typeof one === 'number');
  const step = Math.max(isInteger ? 1 : 0, ...steps) || 0.5;
  // In OpenAPI 3.0 exclusive limits are flags.
  const above = exclusiveMinimum === true ? number(minimum, -Infinity) : number(exclusiveMinimum, -Infinity);
  const below = exclusiveMaximum === true ? number(maximum, Infinity) : number(exclusiveMaximum, Infinity);
  const [least, most] = [number(minimum, -Infinity), number(maximum, Infinity)];
  const isFitting = (one: number): boolean =>
    one >= least &&
    one <= most &&
    one > above &&
    one < below &&
    (!isInteger || Number.isInteger(one)) &&
    steps.every((by) => Number.isInteger(one / by));
  const [low, high] = [Math.max(least, above), Math.min(most, below)];
  const start = Math.min(Math.max(step, low), high);
  const multiples = Array.from({ length: ATTEMPTS }, (_, index) => [
    Number(((Math.ceil(start / step) + index) * step).toPrecision(12)),
    Number(((Math.floor(start / step) - index) * step).toPrecision(12)),
  ]).flat();
  const between = Number.isFinite(low + high) ? [(low + high) / 2, low + (high - low) / 4] : [];
  const found = [...new Set([...multiples, start, ...between])].filter(isFitting);
  const value = found[shift] ?? found[0];
  if (value === undefined) throw new TypeError(`no number found from ${low} to ${high} in steps of ${step}`);
  return value;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function number(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}
