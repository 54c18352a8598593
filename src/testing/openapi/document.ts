import { readFileSync } from 'node:fs';
import type * as jsYaml from 'js-yaml';
import { isObject, ownValue } from 'tillgate/internal';
import { ConfigurationError } from 'tillgate';
import { bundle, dereference, record } from './references';

export { contentOf, dereference, nodeAt, record, toFragment } from './references';

/** The part of an OpenAPI 3 document that Tillgate reads. */
export interface ContractDocument {
  readonly openapi: string;
  readonly servers?: readonly Server[];
  readonly security?: Security;
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components?: { readonly securitySchemes?: Readonly<Record<string, SecurityScheme>> };
}

interface SecurityScheme {
  readonly type: string;
  /** Of type `http`: `bearer`, `basic`. */
  readonly scheme?: string;
  /** Of type `apiKey`. */
  readonly in?: string;
  readonly name?: string;
  readonly flows?: Readonly<Record<string, { readonly scopes?: Readonly<Record<string, string>> }>>;
}

/** The operations of one path. */
interface PathItem extends Readonly<Partial<Record<(typeof METHODS)[number], DocumentOperation>>> {
  readonly $ref?: string;
  /** Methods that have no field of their own (OpenAPI 3.2). */
  readonly additionalOperations?: Readonly<Record<string, DocumentOperation>>;
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
  readonly responses?: Readonly<Record<string, unknown>>;
}

/** One parameter. */
export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema?: object;
  readonly content?: Readonly<Record<string, object>>;
  readonly style?: string;
  readonly explode?: boolean;
  readonly allowReserved?: boolean;
}

/** Alternatives: the scopes of each required scheme. */
type Security = readonly Readonly<Record<string, readonly string[]>>[];

interface Server {
  readonly url: string;
  readonly variables?: Readonly<Record<string, { readonly default: string }>>;
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'] as const;

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
  /**
   * `anybody`: no token needed; `token`: as `security` says; `other`: a scheme that Tillgate cannot check, such as a key;
   * `elsewhere`: at servers of its own.
   */
  readonly access: 'anybody' | 'token' | 'other' | 'elsewhere';
  /** Whether the document calls its token an API key in `Authorization`: often a bearer token, often something else. */
  readonly hasKey: boolean;
  /** What a request needs beside its token: `header X-Api-Key`. */
  readonly alsoNeeds: readonly string[];
  /** Whether anybody may call it, wherever it is. */
  readonly isPublic: boolean;
}

/** The name of an operation or route: `GET /orders/{id}`. */
export function nameOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path}`;
}

/**
 * Lists the operations of this API, without those that have `servers` of their own.
 *
 * @param basePath - prefix of every path of the document
 */
export function allOperations(document: ContractDocument, basePath = ''): readonly LocatedOperation[] {
  return everyOperation(document, basePath).filter(({ access }) => access !== 'elsewhere');
}

/** Lists all operations of a document. */
export function everyOperation(document: ContractDocument, basePath = ''): readonly LocatedOperation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, given]) => {
    const target = dereference(document, given);
    if (!path.startsWith('/') || !isObject(target) || !isObject(given)) return [];
    // A path item may refer to another one, and replace members of it.
    const item: PathItem = { ...target, ...given };
    const methods = METHODS.map((method) => [method, item[method]] as const);
    return [...methods, ...Object.entries(record(item.additionalOperations))].flatMap(([method, operation]) =>
      isObject(operation) ? [locate(document, basePath + path, item, method, operation as DocumentOperation)] : [],
    );
  });
}

/** Prefix of every path of the document: the path of its first server, without a slash at the end. */
export function basePathOf({ servers }: ContractDocument): string {
  const [{ url = '/', variables = {} } = { url: '/' }] = servers ?? [];
  const filled = url.replace(/\{([^}]+)\}/g, (_, name: string) => variables[name]?.default ?? '');
  const { pathname } = new URL(filled, 'http://localhost');
  return pathname.replace(/\/+$/, '');
}

/** The scopes that the document declares. */
export function declaredScopes(document: ContractDocument): readonly string[] {
  const names = Object.keys(document.components?.securitySchemes ?? {});
  const flows = names.flatMap((name) => Object.values(schemeOf(document, name)?.flows ?? {}));
  return [...new Set(flows.flatMap((flow) => Object.keys(record(flow?.scopes))))];
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
  const security = readSecurity(operation.security) ?? readSecurity(document.security) ?? [];
  const usable = usableOf(document, security);
  const servers = operation.servers ?? item.servers;
  const isElsewhere = servers?.length && JSON.stringify(servers) !== JSON.stringify(document.servers);
  return {
    method: method.toUpperCase(),
    path,
    operation,
    get parameters() {
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
      return parameters.map((parameter) => resolve(document, parameter));
    },
    security: usable.map((requirement) =>
      Object.entries(requirement).flatMap(([name, scopes]) => (takesTokens(document, name) ? (scopes ?? []) : [])),
    ),
    access: isElsewhere ? 'elsewhere' : accessOf(security, usable),
    isPublic: accessOf(security, usable) === 'anybody',
    hasKey: usable.some((one) => Object.keys(one).some((name) => takesTokens(document, name, 'apiKey'))),
    alsoNeeds: Object.keys(usable[0] ?? {}).flatMap((name) =>
      takesTokens(document, name) ? [] : [describeScheme(name, schemeOf(document, name))],
    ),
  };
}

/** Entries that are not objects say nothing: they open no operation. */
function readSecurity(given: unknown): Security | undefined {
  if (!Array.isArray(given)) return undefined;
  const requirements = given.filter(isObject);
  return given.length > 0 && requirements.length === 0 ? undefined : (requirements as Security);
}

/** Alternatives that a bearer token meets alone, else those that it meets along with something else, such as a key. */
function usableOf(document: ContractDocument, security: Security): Security {
  const takes = (name: string): boolean => takesTokens(document, name);
  const alone = security.filter((requirement) => Object.keys(requirement).every(takes));
  return alone.length > 0 ? alone : security.filter((requirement) => Object.keys(requirement).some(takes));
}

function accessOf(security: Security, usable: Security): LocatedOperation['access'] {
  if (security.length === 0 || security.some((requirement) => Object.keys(requirement).length === 0)) return 'anybody';
  return usable.length > 0 ? 'token' : 'other';
}

function schemeOf(document: ContractDocument, name: string): SecurityScheme | undefined {
  const found = dereference(document, ownValue(document.components?.securitySchemes, name));
  return isObject(found) ? (found as unknown as SecurityScheme) : undefined;
}

/** Whether a scheme takes bearer tokens; an undeclared one counts, so that its operations are checked. */
function takesTokens(document: ContractDocument, name: string, only?: string): boolean {
  const { type, scheme, in: place, name: header } = schemeOf(document, name) ?? { type: 'oauth2' };
  if (only !== undefined && type !== only) return false;
  // It may be a bearer token that is documented as a key.
  if (type === 'apiKey') return place === 'header' && header?.toLowerCase() === 'authorization';
  return type === 'oauth2' || type === 'openIdConnect' || (type === 'http' && scheme?.toLowerCase() === 'bearer');
}

function describeScheme(key: string, scheme: SecurityScheme | undefined): string {
  return scheme?.type === 'apiKey' ? `${scheme.in} ${scheme.name}` : `${key} (${scheme?.type})`;
}

function resolve(document: ContractDocument, parameter: Parameter | { readonly $ref: string }): Parameter {
  if (!('$ref' in parameter)) return parameter;
  const target = dereference(document, parameter);
  if (!isObject(target)) throw new TypeError(`${parameter.$ref} does not exist`);
  return target as unknown as Parameter;
}

/** Makes a test for paths to skip: as they are written, or `/docs/*` for everything below. */
export function ignoredPaths(patterns: readonly string[]): (path: string) => boolean {
  return (path) => patterns.some((one) => one === path || (one.endsWith('/*') && path.startsWith(one.slice(0, -1))));
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

/**
 * Loads an OpenAPI 3 document.
 *
 * @param source - a YAML or JSON file, or its parsed content
 * @throws ConfigurationError when it cannot be read, or is not an OpenAPI 3 document
 */
export function loadDocument(source: string | object): ContractDocument {
  const document = typeof source === 'string' ? bundle(source, parseYaml) : source;
  if (isContract(document)) return document;
  const name = typeof source === 'string' ? source : 'the document';
  const hint = isObject(document) && 'swagger' in document ? '; convert Swagger 2 with npx swagger2openapi' : '';
  throw new ConfigurationError([`${name}: expected an OpenAPI 3 document with "openapi: 3.x.y" and "paths"${hint}`]);
}

/** Loaded when the first document is read. */
function yaml(): typeof jsYaml {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would load it immediately
  return require('js-yaml') as typeof jsYaml;
}

/**
 * Reads a YAML or JSON file.
 *
 * @throws ConfigurationError when it cannot be read
 */
export function parseYaml(file: string): unknown {
  try {
    const text = readFileSync(file, 'utf8');
    return text.trim() === '' ? undefined : yaml().load(text);
  } catch (error) {
    throw new ConfigurationError([`${file}: cannot be read: ${(error as Error).message}`]);
  }
}

function isContract(document: unknown): document is ContractDocument {
  if (!isObject(document)) return false;
  const { openapi, paths, webhooks, components } = document;
  if (typeof openapi !== 'string' || !openapi.startsWith('3.')) return false;
  // Since 3.1 a document may have webhooks or components only.
  const isPart = paths === undefined && !openapi.startsWith('3.0.') && (webhooks ?? components) !== undefined;
  return isObject(paths) || isPart;
}
