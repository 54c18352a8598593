/** Larger bodies are refused without being read. */
const BODY_LIMIT = 102_400;

/** A request body made to be expensive to validate. */
export interface LargestBody {
  readonly name: string;
  readonly text: string;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/**
 * Bodies of one size, the largest that is read by default, made from an example: at each place in turn an array, an
 * object, a text or a nesting fills the body.
 */
export function* largestBodies(example: object, size = BODY_LIMIT): Iterable<LargestBody> {
  for (const [place, put] of placesIn(example as Json)) {
    for (const [what, fill] of FILLS) yield { name: `${what} at ${place}`, text: filled(put, fill, size) };
    for (const [what, item] of itemsFor(put.value)) {
      yield { name: `an array of ${what} at ${place}`, text: filled(put, array(item), size) };
    }
  }
}

/** Puts a value, given as JSON, into a place. */
type Put = ((json: string) => string) & { readonly value: Json };
/** JSON of about this many characters. */
type Fill = (size: number) => string;

const FILLS: readonly (readonly [string, Fill])[] = [
  ['unknown members', (size) => `{${repeated(size, (index) => `"m${index}":0`)}}`],
  ['arrays in each other', (size) => '['.repeat(size / 2) + ']'.repeat(size / 2)],
  ['objects in each other', (size) => '{"a":'.repeat(size / 6 - 1) + '0' + '}'.repeat(size / 6 - 1)],
  ...['a', 'A', '0', '-', '/', '+', '@', '.', ' ', '\u{1f600}'].map((char) => {
    const fill: Fill = (size) => JSON.stringify(char.repeat((size - 2) / Buffer.byteLength(char)));
    return [`a text of ${JSON.stringify(char)}`, fill] as const;
  }),
];

/** Items to fill an array with: wrong ones, and right ones where the example has an array. */
function itemsFor(value: Json): readonly (readonly [string, Json])[] {
  const right: Json = Array.isArray(value) && value.length > 0 ? (value[0] as Json) : {};
  const mixed = typeof right === 'object' && right !== null ? { ...right, unknown: 0 } : [right];
  return [
    ['{}', {}],
    ['0', 0],
    ['null', null],
    ['arrays', [[], []]],
    ['right items', right],
    ['items that are wrong at their end', mixed],
  ];
}

function array(item: Json): Fill {
  const text = JSON.stringify(item);
  return (size) => `[${repeated(size, () => text)}]`;
}

function repeated(size: number, make: (index: number) => string): string {
  const parts: string[] = [];
  for (let length = 2; ;) {
    const part = make(parts.length);
    length += part.length + 1;
    if (length > size) return parts.join(',');
    parts.push(part);
  }
}

function filled(put: Put, fill: Fill, size: number): string {
  return put(fill(size - Buffer.byteLength(put('0'))));
}

/** Every place in a value, including the value itself. */
function* placesIn(
  value: Json,
  place = '/',
  wrap: (json: string) => string = (json) => json,
): Iterable<readonly [string, Put]> {
  yield [place, Object.assign((json: string) => wrap(json), { value })];
  if (typeof value !== 'object' || value === null) return;
  const isArray = Array.isArray(value);
  for (const [name, member] of Object.entries(value)) {
    const into = (json: string): string => {
      const parts = Object.entries(value).map(([other, text]) => {
        const inner = other === name ? json : JSON.stringify(text);
        return isArray ? inner : `${JSON.stringify(other)}:${inner}`;
      });
      return wrap(isArray ? `[${parts.join(',')}]` : `{${parts.join(',')}}`);
    };
    yield* placesIn(member, `${place === '/' ? '' : place}/${name}`, into);
  }
}
