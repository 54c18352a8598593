import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as jsYaml from 'js-yaml';
import { ConfigurationError } from '../core/configuration-error';
import { requirePackages } from '../core/required-packages';
import type { ContractDocument } from './document';

/** The contract of the scaffold, in the root of the package: two levels up from src/openapi and from dist/openapi alike. */
export const CONTRACT_FILE = join(__dirname, '..', '..', 'openapi.yaml');
let ownContract: ContractDocument | undefined;

/**
 * Loads the contract.
 *
 * @param file - default: the openapi.yaml of this package, which is read once per process
 * @throws ConfigurationError when it cannot be read, or is not an OpenAPI 3.1 document
 */
export function loadContract(file?: string): ContractDocument {
  if (file !== undefined) return requireDocument(parseYaml(file), file, '3.1');
  return (ownContract ??= loadContract(CONTRACT_FILE));
}

/**
 * Loads any OpenAPI 3 document.
 *
 * @param source - a YAML or JSON file, or its parsed content
 * @throws ConfigurationError when it cannot be read, or is not an OpenAPI 3 document
 */
export function loadDocument(source: string | object): ContractDocument {
  if (typeof source !== 'string') return requireDocument(source, 'the document', '3');
  return requireDocument(parseYaml(source), source, '3');
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
