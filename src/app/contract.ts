import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';

/** openapi.yaml: what callers may send, what they get, and which scopes they need. `dist` of a clone is one folder deeper. */
export const CONTRACT_FILE = join(
  __dirname,
  existsSync(join(__dirname, '../../openapi.yaml')) ? '../..' : '../../..',
  'openapi.yaml',
);

/** The part of openapi.yaml that this app reads. */
export interface Contract {
  readonly info: { readonly title: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>> & Pick<Operation, 'parameters'>>>;
  readonly components: {
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly schemas: Readonly<Record<string, { readonly examples?: readonly object[] }>>;
    readonly securitySchemes: {
      readonly oauth2: { readonly flows: { readonly clientCredentials: { readonly scopes: object } } };
    };
  };
}

/** One operation of a path. */
export interface Operation {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly required?: boolean; readonly content: object };
}

/** One parameter of the path or the query. */
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: object;
}

let loaded: Contract | undefined;

/** The contract, read once per process. */
export function loadContract(): Contract {
  return (loaded ??= load(readFileSync(CONTRACT_FILE, 'utf8')) as Contract);
}

/** The operation of a method and a path as openapi.yaml writes it: `/v1/orders/{id}`. */
export function operationOf({ paths }: Contract, method: string, path: string): Operation {
  const operation = paths[path]?.[method.toLowerCase()];
  if (!operation) throw new Error(`openapi.yaml has no ${method} ${path}`);
  return operation;
}

/** The parameters of an operation, those that its path shares included. */
export function parametersOf(contract: Contract, method: string, path: string): readonly Parameter[] {
  const shared = contract.paths[path]?.parameters ?? [];
  return [...shared, ...(operationOf(contract, method, path).parameters ?? [])].map((given) => {
    if (!('$ref' in given)) return given;
    const parameter = contract.components.parameters[given.$ref.slice(given.$ref.lastIndexOf('/') + 1)];
    if (!parameter) throw new Error(`openapi.yaml has no ${given.$ref}`);
    return parameter;
  });
}

/** Every scope that a client can have. */
export function scopesOf({ components }: Contract): readonly string[] {
  return Object.keys(components.securitySchemes.oauth2.flows.clientCredentials.scopes);
}

/** The examples of a schema: the sample data of the placeholders. */
export function examplesOf({ components }: Contract, schema: string): readonly object[] {
  return components.schemas[schema]?.examples ?? [];
}
