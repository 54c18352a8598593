import { isObject, ownValue } from 'tillgate/internal';
import { dirname, resolve } from 'node:path';

/** A node of a document: the path of names that leads to it, and its value. */
interface DocumentNode {
  readonly names: readonly string[];
  readonly value: unknown;
}

/** Longer chains of references are taken for circles. */
const LONGEST_CHAIN = 32;

/**
 * Finds the node at a path, following every `$ref` on the way (RFC 6901); a missing node has the value `undefined`.
 *
 * @throws TypeError when a reference leads outside of the document, or in a circle
 */
export function nodeAt(document: object, names: readonly string[]): DocumentNode {
  const root: DocumentNode = { names: [], value: document };
  return names.reduce((node, name) => followReferences(document, member(node, name)), root);
}

/**
 * Follows the `$ref` of a value, and those that it leads to.
 *
 * @throws TypeError when a reference leads outside of the document, or in a circle
 */
export function dereference(document: object, value: unknown): unknown {
  return followReferences(document, { names: [], value }).value;
}

function followReferences(document: object, start: DocumentNode): DocumentNode {
  let node = start;
  for (let length = 0; isObject(node.value) && typeof node.value['$ref'] === 'string'; length += 1) {
    const reference = node.value['$ref'];
    if (!/^#(\/|$)/.test(reference)) {
      throw new TypeError(`${reference}: leads to another file; bundle the document first`);
    }
    if (length === LONGEST_CHAIN) throw new TypeError(`${reference}: leads in a circle`);
    const names = decodeURIComponent(reference).split('/').slice(1);
    const root: DocumentNode = { names: [], value: document };
    node = names.map((name) => name.replace(/~1/g, '/').replace(/~0/g, '~')).reduce(member, root);
  }
  return node;
}

function member({ names, value }: DocumentNode, name: string): DocumentNode {
  return { names: [...names, name], value: ownValue(value, name) };
}

/** A value as an object; without members where it is none. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** The media types of a request body or a response, with what is said of each. */
export function contentOf(document: object, holder: unknown): Readonly<Record<string, unknown>> {
  return record(record(dereference(document, holder))['content']);
}

/** A URI fragment for a node of a document: names escaped by RFC 6901 section 3, then percent-encoded (section 6). */
export function toFragment(names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name.replace(/~/g, '~0').replace(/\//g, '~1'))}`).join('');
}

/** Where the content of files beside the document is kept. */
const FILES = 'x-files';

/**
 * Makes one document of a file and of those that it refers to, so that every reference is local.
 *
 * @param read - reads and parses a file
 */
export function bundle(file: string, read: (file: string) => unknown): unknown {
  const root = resolve(file);
  const files = new Map<string, unknown>();

  function rewrite(value: unknown, own: string): unknown {
    if (Array.isArray(value)) return value.map((one) => rewrite(one, own));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => {
        const isReference = name === '$ref' && typeof inner === 'string' && !/^[a-z][a-z\d+.-]*:/i.test(inner);
        return [name, isReference ? localOf(inner, own) : rewrite(inner, own)];
      }),
    );
  }

  function localOf(reference: string, own: string): string {
    const [path = '', fragment = ''] = reference.split('#', 2);
    const target = path === '' ? own : resolve(dirname(own), decodeURIComponent(path));
    if (target === root) return `#${fragment}`;
    if (!files.has(target)) {
      files.set(target, undefined);
      files.set(target, rewrite(read(target), target));
    }
    return `#${toFragment([FILES, target])}${fragment}`;
  }

  const document = rewrite(read(root), root);
  return files.size === 0 || !isObject(document) ? document : { ...document, [FILES]: Object.fromEntries(files) };
}
