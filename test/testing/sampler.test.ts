import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { prepareRequest } from '../../src/testing/contract/samples';
import type { LocatedOperation } from '../../src/testing/openapi/document';

type Schema = Readonly<Record<string, unknown>>;

/** The keywords of public documents that the grammar has. Another one that no value fits is named in "not tested". */
const KEYWORDS = {
  text: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  list: ['items', 'minItems', 'uniqueItems'],
  object: ['properties', 'required', 'additionalProperties', 'minProperties'],
  any: ['enum', 'const', 'allOf', 'oneOf', 'anyOf', 'not'],
} as const;

const small = fc.integer({ min: 0, max: 6 });
const maybe = (arbitrary: fc.Arbitrary<Schema>): fc.Arbitrary<Schema> => fc.oneof(fc.constant({}), arbitrary);
const all = (...parts: readonly fc.Arbitrary<Schema>[]): fc.Arbitrary<Schema> =>
  fc.tuple(...parts).map((each) => Object.assign({}, ...each) as Schema);
/** A type alone, in an array, and beside null or another one. */
const typed = (type: string): fc.Arbitrary<Schema> =>
  fc.constantFrom({ type }, { type: [type] }, { type: [type, 'null'] }, { type: ['null', type] });

const text = all(
  typed('string'),
  fc.oneof(
    fc.record({ minLength: small }),
    fc.tuple(small, small).map(([a, b]) => ({ minLength: Math.min(a, b), maxLength: Math.max(a, b) })),
    fc.constantFrom('date', 'date-time', 'email', 'uuid', 'uri', 'ipv4', 'byte').map((format) => ({ format })),
    fc.constantFrom('^[A-Z]{3}$', '^\\d{5}(-\\d{4})?$', '^[a-z]+-[0-9]+$').map((pattern) => ({ pattern })),
    fc.constantFrom(
      { format: 'email', maxLength: 12 },
      { format: 'uri', maxLength: 20 },
      { format: 'uri', minLength: 40 },
    ),
  ),
);
const bounds = fc.tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: 1, max: 9 }));
const number = all(
  fc.constantFrom('integer', 'number').chain(typed),
  fc.oneof(
    bounds.map(([minimum, width]) => ({ minimum, maximum: minimum + width })),
    bounds.map(([least, width]) => ({ exclusiveMinimum: least, exclusiveMaximum: least + width + 1 })),
    bounds.map(([minimum, multipleOf]) => ({ minimum, multipleOf })),
    fc.constantFrom({ exclusiveMaximum: 0 }, { maximum: -3 }, { minimum: 0.5 }),
  ),
);
const fraction = fc.constantFrom(
  { type: 'number', exclusiveMinimum: 0, maximum: 0.1 },
  { type: 'number', minimum: 0.3, multipleOf: 0.1 },
  { type: ['number', 'null'], minimum: 0.01, maximum: 0.02, multipleOf: 0.01 },
);
const fixed = fc.constantFrom<Schema>(
  { const: null },
  { const: 'a' },
  { enum: [null, 'a'] },
  { type: ['boolean', 'null'] },
  { type: ['integer', 'string'], format: 'int32', pattern: '^-?(?:0|[1-9]\\d*)$' },
  { type: 'string', not: { enum: ['sample', ''] } },
);

const { schema } = fc.letrec<{
  schema: Schema;
  leaf: Schema;
  object: Schema;
  list: Schema;
  merged: Schema;
  one: Schema;
}>((tie) => ({
  leaf: fc.oneof(text, number, fraction, fixed),
  object: all(
    typed('object'),
    fc
      .dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema'), { minKeys: 1, maxKeys: 3 })
      .chain((properties) =>
        fc.subarray(Object.keys(properties)).map((required): Schema => ({ properties, required })),
      ),
    maybe(fc.constantFrom({ additionalProperties: false }, { minProperties: 1 })),
  ),
  list: all(typed('array'), fc.record({ items: tie('leaf'), minItems: fc.integer({ min: 0, max: 2 }) })),
  /** Branches that say something about the same member. */
  merged: fc
    .constantFrom<readonly [Schema, Schema]>(
      [{ type: 'string' }, { enum: ['card'] }],
      [{ type: 'integer' }, { minimum: 10 }],
      [{ type: 'string' }, { pattern: '^[A-Z]{3}-\\d{4}$' }],
      [{ type: 'object' }, { required: ['x'], properties: { x: { type: 'integer' } } }],
      [{ type: 'array', items: { type: 'string' }, minItems: 1 }, { items: { enum: ['orders'] } }],
      [{ type: 'integer', multipleOf: 4 }, { multipleOf: 6 }],
    )
    .map(([one, other]) => ({
      allOf: [{ type: 'object', required: ['a'], properties: { a: one } }, { properties: { a: other } }],
    })),
  one: fc.constantFrom<Schema>(
    { oneOf: [{ type: 'integer' }, { type: 'number' }] },
    { oneOf: [{ type: 'string' }, { type: 'string', format: 'date-time' }] },
    {
      type: 'object',
      properties: { id: { type: 'string' }, code: {} },
      oneOf: [{ required: ['id'] }, { required: ['code'] }],
    },
    { anyOf: [{ type: 'string', enum: ['card', 'cash'] }, { type: 'string' }] },
  ),
  schema: fc.oneof({ maxDepth: 3 }, tie('leaf'), tie('object'), tie('list'), tie('merged'), tie('one')),
}));
/** Items that differ, of a kind that has enough values. */
const unique = fc
  .constantFrom<Schema>(
    { type: 'boolean' },
    { type: 'integer', minimum: 1, maximum: 2 },
    { type: 'string', format: 'uuid' },
    { type: 'string', pattern: '^[0-9]{13}$' },
    { type: 'object', required: ['sku'], properties: { sku: { type: 'string' } } },
    { enum: ['a', 'b'] },
  )
  .map((items): Schema => ({ type: 'array', minItems: 2, uniqueItems: true, items }));

/** The body that is sent for a schema. */
function sent(openapi: string, body: Schema): unknown {
  const requestBody = { content: { 'application/json': { schema: body } } };
  const at = { method: 'POST', path: '/', parameters: [], operation: { requestBody } } as unknown as LocatedOperation;
  return JSON.parse(prepareRequest({ openapi, paths: {} }, at, {}).body ?? '');
}

describe('what the sampler makes', () => {
  const ajv = new Ajv2020({ strict: false, logger: false });
  addFormats(ajv);

  it('is valid by its schema, whatever the grammar of schemas makes', () => {
    const property = fc.property(fc.oneof(schema, unique), (one) => {
      const validate = ajv.compile(one);
      const value = sent('3.1.0', one);
      if (!validate(value)) throw new Error(`${JSON.stringify(value)} ${ajv.errorsText(validate.errors)}`);
    });
    fc.assert(property, { numRuns: 400 });
  });

  it('has every keyword of the grammar', () => {
    const text = JSON.stringify(fc.sample(fc.oneof(schema, unique), { numRuns: 2_000, seed: 1 }));
    const missing = Object.values(KEYWORDS)
      .flat()
      .filter((name) => !text.includes(`"${name}":`));
    expect(missing).toEqual([]);
  });

  it.each([
    ['no value fits', { type: 'string', not: {} }, /\(not\)\); give one in "requests"$/],
    ['a format is unknown to the kit', { type: 'string', format: 'iso-time' }, /\(format\)\); give one in "requests"$/],
  ])('is never sent where %s: the keyword is named', (_why, one, message) => {
    expect(() => sent('3.1.0', { type: 'object', required: ['a'], properties: { a: one } })).toThrow(message);
  });

  it.each(['application/xml', 'text/csv'])('is not written as %s', (type) => {
    const requestBody = { content: { [type]: { schema: { type: 'object' } } } };
    const at = { method: 'POST', path: '/', parameters: [], operation: { requestBody } } as unknown as LocatedOperation;
    expect(() => prepareRequest({ openapi: '3.1.0', paths: {} }, at, {})).toThrow('give a body in "requests"');
    expect(prepareRequest({ openapi: '3.1.0', paths: {} }, at, { body: '<a/>' }).body).toBe('<a/>');
  });
});
