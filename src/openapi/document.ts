/** As much of an OpenAPI 3.1 document as Tillgate reads. */
export interface ContractDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components?: {
    readonly parameters?: Readonly<Record<string, Parameter>>;
    readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  };
}

/** What stands under one path. */
export interface PathItem extends Readonly<Partial<Record<DocumentMethod, DocumentOperation>>> {
  readonly parameters?: readonly (Parameter | Reference)[];
}

/** What stands under one method of a path. */
export interface DocumentOperation {
  readonly operationId?: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
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

interface SecurityScheme {
  readonly type: string;
  readonly flows?: { readonly clientCredentials?: { readonly scopes: Readonly<Record<string, string>> } };
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;

/** A method as OpenAPI writes it. */
export type DocumentMethod = (typeof METHODS)[number];

/** One operation below `/v1`, with where it stands. */
export interface LocatedOperation {
  /** As in a request: `GET`. */
  readonly method: string;
  readonly path: string;
  readonly operation: DocumentOperation;
  /** Those of the path and of the operation. */
  readonly parameters: readonly Parameter[];
  /** Alternatives, each of which requires all of its scopes. Empty: no scope is asked for. */
  readonly security: readonly (readonly string[])[];
}

/** What the contract is about: all operations under this prefix stand behind the gate. */
const PREFIX = '/v1/';

/** Lists the operations behind the gate. */
export function operationsOf(document: ContractDocument): readonly LocatedOperation[] {
  return Object.entries(document.paths)
    .filter(([path]) => path.startsWith(PREFIX))
    .flatMap(([path, item]) =>
      METHODS.flatMap((method) => {
        const operation = item[method];
        return operation ? [locate(document, path, item, method, operation)] : [];
      }),
    );
}

/** The scopes that the document declares, with their descriptions. */
export function declaredScopes(document: ContractDocument): readonly string[] {
  const schemes = Object.values(document.components?.securitySchemes ?? {});
  return schemes.flatMap((scheme) => Object.keys(scheme.flows?.clientCredentials?.scopes ?? {}));
}

function locate(
  document: ContractDocument,
  path: string,
  item: PathItem,
  method: DocumentMethod,
  operation: DocumentOperation,
): LocatedOperation {
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
  return {
    method: method.toUpperCase(),
    path,
    operation,
    parameters: parameters.map((parameter) => resolve(document, parameter)),
    security: (operation.security ?? []).map((requirement) => Object.values(requirement).flat()),
  };
}

function resolve(document: ContractDocument, parameter: Parameter | Reference): Parameter {
  if (!('$ref' in parameter)) return parameter;
  const name = parameter.$ref.replace('#/components/parameters/', '');
  const target = document.components?.parameters?.[name];
  if (!target) throw new TypeError(`openapi.yaml: ${parameter.$ref} leads nowhere`);
  return target;
}
