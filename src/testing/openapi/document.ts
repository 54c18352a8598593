import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as jsYaml from 'js-yaml';
import { isObject, ownValue, requirePackages } from 'tillgate/internal';
import { ConfigurationError } from 'tillgate';

/** The part of an OpenAPI 3 document that Tillgate reads. */
export interface ContractDocument {
  readonly openapi: string;
  readonly servers?: readonly Server[];
  readonly security?: Security;
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components?: {
    readonly securitySchemes?: Readonly<
      Record<
        string,
        {
          readonly type: string;
          /** Of type `http`: `bearer`, `basic`. */
          readonly scheme?: string;
          readonly flows?: Readonly<Record<string, { readonly scopes?: Readonly<Record<string, string>> }>>;
        }
      >
    >;
  };
}

/** The operations of one path. */
interface PathItem extends Readonly<Partial<Record<(typeof METHODS)[number], DocumentOperation>>> {
  readonly $ref?: string;
  readonly servers?: readonly Server[];
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
}

/** One operation of a path. */
interface DocumentOperation {
  readonly operationId?: string;
  readonly servers?: readonly Server[];
  readonly security?: Security;
  readonly 'x-optional-scopes'?: readonly string[];
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { readonly schema: object }>>;
  };
}

/** One parameter. */
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema?: object;
}

/** Alternatives: the scopes of each required scheme. */
type Security = readonly Readonly<Record<string, readonly string[]>>[];

interface Server {
  readonly url: string;
  readonly variables?: Readonly<Record<string, { readonly default: string }>>;
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;

/** Sets of scopes, each of which is sufficient. No set: nothing is required. An empty set: any token. */
export type Alternatives = readonly (readonly string[])[];

/** One operation, with its method and path. */
export interface LocatedOperation {
  /** In upper case: `GET`. */
  readonly method: string;
  readonly path: string;
  readonly operation: DocumentOperation;
  /** Those of the path and of the operation. */
  readonly parameters: readonly Parameter[];
  readonly security: Alternatives;
  /** `anybody`: no token needed; `token`: as `security` says; `other`: a scheme that Tillgate cannot check, such as a key. */
  readonly access: 'anybody' | 'token' | 'other';
}

/** The name of an operation or route: `GET /orders/{id}`. */
export function nameOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path}`;
}

/** Lists the operations of the scaffold that its gate protects. */
export function operationsOf(document: ContractDocument): readonly LocatedOperation[] {
  return allOperations(document).filter(({ path }) => path.startsWith('/v1/'));
}

/**
 * Lists the operations of this API, without those that have `servers` of their own.
 *
 * @param basePath - prefix of every path of the document
 * @throws TypeError when a path refers to another file
 */
export function allOperations(document: ContractDocument, basePath = ''): readonly LocatedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) => {
    if (item.$ref !== undefined) throw new TypeError(`${path}: refers to ${item.$ref}; bundle the document first`);
    return METHODS.flatMap((method) => {
      const operation = item[method];
      if (!operation || (operation.servers ?? item.servers)) return [];
      return [locate(document, basePath + path, item, method, operation)];
    });
  });
}

/** Prefix of every path of the document: the path of its first server, without a slash at the end. */
export function basePathOf({ servers }: ContractDocument): string {
  const [{ url, variables = {} } = { url: '/' }] = servers ?? [];
  const filled = url.replace(/\{([^}]+)\}/g, (_, name: string) => variables[name]?.default ?? '');
  const { pathname } = new URL(filled, 'http://localhost');
  return pathname.replace(/\/+$/, '');
}

/** The scopes that the document declares. */
export function declaredScopes(document: ContractDocument): readonly string[] {
  const schemes = Object.values(document.components?.securitySchemes ?? {});
  const flows = schemes.flatMap((scheme) => Object.values(scheme.flows ?? {}));
  return [...new Set(flows.flatMap(({ scopes }) => Object.keys(scopes ?? {})))];
}

/** Every scope that the document declares or requires, sorted. */
export function scopesOf(document: ContractDocument): readonly string[] {
  const required = allOperations(document).flatMap(({ security }) => security.flat());
  return [...new Set([...declaredScopes(document), ...required])].sort();
}

function locate(
  document: ContractDocument,
  path: string,
  item: PathItem,
  method: string,
  operation: DocumentOperation,
): LocatedOperation {
  const security = operation.security ?? document.security ?? [];
  return {
    method: method.toUpperCase(),
    path,
    operation,
    get parameters() {
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
      return parameters.map((parameter) => resolve(document, parameter));
    },
    security: security.map((requirement) => Object.values(requirement).flat()),
    access: accessOf(document, security),
  };
}

function accessOf(document: ContractDocument, security: Security): LocatedOperation['access'] {
  const alternatives = security.map((requirement) => Object.keys(requirement));
  if (alternatives.length === 0 || alternatives.some((names) => names.length === 0)) return 'anybody';
  return alternatives.every((names) => names.some((name) => takesTokens(document, name))) ? 'token' : 'other';
}

/** Whether a scheme takes bearer tokens; an undeclared one counts, so that its operations are checked. */
function takesTokens({ components }: ContractDocument, name: string): boolean {
  const { type, scheme } = components?.securitySchemes?.[name] ?? { type: 'oauth2' };
  return type === 'oauth2' || type === 'openIdConnect' || (type === 'http' && scheme?.toLowerCase() === 'bearer');
}

function resolve(document: ContractDocument, parameter: Parameter | { readonly $ref: string }): Parameter {
  if (!('$ref' in parameter)) return parameter;
  const target = dereference(document, parameter);
  if (!isObject(target)) throw new TypeError(`${parameter.$ref} does not exist`);
  return target as unknown as Parameter;
}

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

/** Makes a test for paths to skip: as they are written, or `/docs/*` for everything below. */
export function ignoredPaths(patterns: readonly string[]): (path: string) => boolean {
  return (path) => patterns.some((one) => one === path || (one.endsWith('/*') && path.startsWith(one.slice(0, -1))));
}

/** A URI fragment for a node of a document: names escaped by RFC 6901 section 3, then percent-encoded (section 6). */
export function toFragment(names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name.replace(/~/g, '~0').replace(/\//g, '~1'))}`).join('');
}

/** A comparable form, `a and b` or `a or b`, without alternatives that another one makes redundant; `` for no scope. */
export function describeAlternatives(alternatives: Alternatives): string {
  const sets = alternatives.map((scopes) => new Set(scopes));
  const needed = sets.filter(
    (set) => !sets.some((other) => other.size < set.size && [...other].every((scope) => set.has(scope))),
  );
  const texts = needed.map((scopes) => [...scopes].sort().join(' and '));
  return [...new Set(texts)].sort().join(' or ');
}

/** The alternatives that satisfy both. */
export function bothOf(a: Alternatives, b: Alternatives): Alternatives {
  return a.flatMap((one) => b.map((other) => [...one, ...other]));
}

/** The contract of the scaffold: in the package above dist, in a clone above src. */
export const CONTRACT_FILE = [join(__dirname, '../../openapi.yaml'), join(__dirname, '../../../openapi.yaml')].reduce(
  (packed, inClone) => (existsSync(packed) ? packed : inClone),
);
/** The same, parsed by the build: reading YAML takes longer. A clone has none. */
const PARSED_CONTRACT = join(__dirname, 'contract.json');
let ownContract: ContractDocument | undefined;

/**
 * Loads a contract of the scaffold.
 *
 * @param source - a YAML or JSON file, or its parsed content; default: the openapi.yaml of this package, which is read
 *   once per process
 * @throws ConfigurationError when it cannot be read, or is not an OpenAPI 3.1 document
 */
export function loadContract(source?: string | object): ContractDocument {
  if (source === undefined) return (ownContract ??= loadContract(parsedContract() ?? CONTRACT_FILE));
  return loadDocument(source, '3.1');
}

function parsedContract(): object | undefined {
  return existsSync(PARSED_CONTRACT) ? (JSON.parse(readFileSync(PARSED_CONTRACT, 'utf8')) as object) : undefined;
}

/**
 * Loads any OpenAPI 3 document.
 *
 * @param source - a YAML or JSON file, or its parsed content
 * @param version - the version that it must have
 * @throws ConfigurationError when it cannot be read, or is not an OpenAPI document of that version
 */
export function loadDocument(source: string | object, version = '3'): ContractDocument {
  if (typeof source !== 'string') return requireDocument(source, 'the document', version);
  return requireDocument(parseYaml(source), source, version);
}

function requireDocument(document: unknown, name: string, version: string): ContractDocument {
  if (isContract(document, version)) return document;
  const member = `openapi: ${version}${version.includes('.') ? '.x' : '.x.y'}`;
  throw new ConfigurationError([`${name}: expected an OpenAPI ${version} document with "${member}" and "paths"`]);
}

/** An optional peer, loaded when the first document is read. */
function yaml(): typeof jsYaml {
  requirePackages('reading an OpenAPI document', ['js-yaml']);
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would load it immediately
  return require('js-yaml') as typeof jsYaml;
}

function parseYaml(file: string): unknown {
  try {
    const text = readFileSync(file, 'utf8');
    return text.trim() === '' ? undefined : yaml().load(text);
  } catch (error) {
    throw new ConfigurationError([`${file}: cannot be read: ${(error as Error).message}`]);
  }
}

function isContract(document: unknown, version: string): document is ContractDocument {
  const { openapi, paths } = (document ?? {}) as Partial<Record<keyof ContractDocument, unknown>>;
  return (
    typeof openapi === 'string' && openapi.startsWith(`${version}.`) && typeof paths === 'object' && paths !== null
  );
}
