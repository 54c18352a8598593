/** As much of an OpenAPI 3 document as Tillgate reads. */
export interface ContractDocument {
  readonly openapi: string;
  readonly servers?: readonly Server[];
  readonly security?: Security;
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components?: {
    readonly parameters?: Readonly<Record<string, Parameter>>;
    readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  };
}

/** What stands under one path. */
export interface PathItem extends Readonly<Partial<Record<DocumentMethod, DocumentOperation>>> {
  readonly $ref?: string;
  readonly servers?: readonly Server[];
  readonly parameters?: readonly (Parameter | Reference)[];
}

/** What stands under one method of a path. */
export interface DocumentOperation {
  readonly operationId?: string;
  readonly servers?: readonly Server[];
  readonly security?: Security;
  readonly 'x-optional-scopes'?: readonly string[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { readonly schema: object }>>;
  };
}

/** One parameter. */
export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: object;
}

interface Reference {
  readonly $ref: string;
}

/** Alternatives, each of which names what it takes: scheme and scopes. */
type Security = readonly Readonly<Record<string, readonly string[]>>[];

interface Server {
  readonly url: string;
  readonly variables?: Readonly<Record<string, { readonly default: string }>>;
}

interface SecurityScheme {
  readonly type: string;
  /** Of type `http`: `bearer`, `basic`. */
  readonly scheme?: string;
  readonly flows?: Readonly<Record<string, { readonly scopes?: Readonly<Record<string, string>> }>>;
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;

/** A method as OpenAPI writes it. */
export type DocumentMethod = (typeof METHODS)[number];

/** One operation, with where it stands. */
export interface LocatedOperation {
  /** As in a request: `GET`. */
  readonly method: string;
  readonly path: string;
  readonly operation: DocumentOperation;
  /** Those of the path and of the operation. */
  readonly parameters: readonly Parameter[];
  /** Alternatives, each of which requires all of its scopes. Empty: no scope is asked for. */
  readonly security: readonly (readonly string[])[];
  /** `anybody` without a token; `token`: what `security` says; `other`: by a key or password, which Tillgate cannot judge. */
  readonly access: 'anybody' | 'token' | 'other';
}

/** What the contract of the scaffold is about: all operations under this prefix stand behind the gate. */
const PREFIX = '/v1/';

/** Lists the operations behind the gate of the scaffold. */
export function operationsOf(document: ContractDocument): readonly LocatedOperation[] {
  return allOperations(document).filter(({ path }) => path.startsWith(PREFIX));
}

/**
 * Lists the operations that this API serves itself: those with servers of their own are somewhere else.
 *
 * @param basePath - what stands before every path of the document
 * @throws TypeError when a path leads to another file
 */
export function allOperations(document: ContractDocument, basePath = ''): readonly LocatedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) => {
    if (item.$ref !== undefined) throw new TypeError(`${path}: leads to ${item.$ref}; bundle the document first`);
    return METHODS.flatMap((method) => {
      const operation = item[method];
      if (!operation || (operation.servers ?? item.servers)) return [];
      return [locate(document, basePath + path, item, method, operation)];
    });
  });
}

/** What stands before every path of the document: the path of its first server, without a slash at the end. */
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

function locate(
  document: ContractDocument,
  path: string,
  item: PathItem,
  method: DocumentMethod,
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

/** Whether a scheme is about bearer tokens; one that is not declared is taken for one, so that nothing is passed over. */
function takesTokens({ components }: ContractDocument, name: string): boolean {
  const { type, scheme } = components?.securitySchemes?.[name] ?? { type: 'oauth2' };
  return type === 'oauth2' || type === 'openIdConnect' || (type === 'http' && scheme?.toLowerCase() === 'bearer');
}

function resolve(document: ContractDocument, parameter: Parameter | Reference): Parameter {
  if (!('$ref' in parameter)) return parameter;
  const name = parameter.$ref.replace('#/components/parameters/', '');
  const target = document.components?.parameters?.[name];
  if (!target) throw new TypeError(`openapi.yaml: ${parameter.$ref} leads nowhere`);
  return target;
}
