import { isObject, ownValue } from '../../core/objects';

/** A node of a document: the path of names that leads to it, and its value. */
export interface DocumentNode {
  readonly names: readonly string[];
  readonly value: unknown;
}

/** Longer chains of references are taken for circles. */
const LONGEST_CHAIN = 32;

/**
 * Finds the node at a path, following every `$ref` on the way (RFC 6901); a missing node has the value `undefined`.
 *
 * @throws TypeError when a reference leads to another file, or in a circle
 */
export function nodeAt(document: object, names: readonly string[]): DocumentNode {
  const root: DocumentNode = { names: [], value: document };
  return names.reduce((node, name) => followReferences(document, member(node, name)), root);
}

/**
 * Follows the `$ref` of a value, and those that it leads to.
 *
 * @throws TypeError when a reference leads to another file, or in a circle
 */
export function dereference(document: object, value: unknown): unknown {
  return followReferences(document, { names: [], value }).value;
}

function followReferences(document: object, start: DocumentNode): DocumentNode {
  let node = start;
  for (let length = 0; isObject(node.value) && typeof node.value['$ref'] === 'string'; length += 1) {
    const reference = node.value['$ref'];
    if (!reference.startsWith('#/')) {
      throw new TypeError(`${reference}: leads to another file; bundle the document first`);
    }
    if (length === LONGEST_CHAIN) throw new TypeError(`${reference}: leads in a circle`);
    const names = decodeURIComponent(reference.slice(2)).split('/');
    const root: DocumentNode = { names: [], value: document };
    node = names.map((name) => name.replace(/~1/g, '/').replace(/~0/g, '~')).reduce(member, root);
  }
  return node;
}

function member({ names, value }: DocumentNode, name: string): DocumentNode {
  return { names: [...names, name], value: ownValue(value, name) };
}
