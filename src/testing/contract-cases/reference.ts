/** A place in a document: the names that lead to it, and what stands there. */
export interface Place {
  readonly names: readonly string[];
  readonly value: unknown;
}

/** References that lead to each other would never end. */
const LONGEST_CHAIN = 32;

/**
 * Goes to a place in a document, through every `$ref` on the way (RFC 6901); nothing there is `undefined`.
 *
 * @throws TypeError when a reference leads to another file, or in a circle
 */
export function goTo(document: object, names: readonly string[]): Place {
  let place: Place = followReferences(document, { names: [], value: document });
  for (const name of names) {
    const value = isRecord(place.value) && Object.hasOwn(place.value, name) ? place.value[name] : undefined;
    place = followReferences(document, { names: [...place.names, name], value });
  }
  return place;
}

/**
 * Follows the `$ref` of a value, and those that it leads to.
 *
 * @throws TypeError when a reference leads to another file, or in a circle
 */
export function dereference(document: object, value: unknown): unknown {
  return followReferences(document, { names: [], value }).value;
}

/** Whether a value has members. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function followReferences(document: object, start: Place): Place {
  let place = start;
  for (let length = 0; isRecord(place.value) && typeof place.value['$ref'] === 'string'; length += 1) {
    const reference = place.value['$ref'];
    if (!reference.startsWith('#/'))
      throw new TypeError(`${reference}: leads to another file; bundle the document first`);
    if (length === LONGEST_CHAIN) throw new TypeError(`${reference}: leads in a circle`);
    const names = decodeURIComponent(reference.slice(2)).split('/');
    place = walk(
      document,
      names.map((name) => name.replace(/~1/g, '/').replace(/~0/g, '~')),
    );
  }
  return place;
}

function walk(document: object, names: readonly string[]): Place {
  let value: unknown = document;
  for (const name of names) value = typeof value === 'object' && value !== null ? value[name as never] : undefined;
  return { names, value };
}
