import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { ConfigurationError } from '../core/configuration-error';
import type { ContractDocument } from './document';

/** Two levels up from src/openapi and from dist/openapi alike: the root of the package. */
const PACKAGE_ROOT = join(__dirname, '..', '..');

/**
 * Loads the contract.
 *
 * @param file - default: the openapi.yaml of this package
 * @throws ConfigurationError when it cannot be read, or is no OpenAPI 3.1 document
 */
export function loadContract(file: string = join(PACKAGE_ROOT, 'openapi.yaml')): ContractDocument {
  const document = parseYaml(file);
  if (!isContract(document)) {
    throw new ConfigurationError([`${file}: expected an OpenAPI 3.1 document with "openapi: 3.1.x" and "paths"`]);
  }
  return document;
}

function parseYaml(file: string): unknown {
  try {
    const text = readFileSync(file, 'utf8');
    return text.trim() === '' ? undefined : load(text);
  } catch (error) {
    throw new ConfigurationError([`${file}: cannot be read: ${(error as Error).message}`]);
  }
}

function isContract(document: unknown): document is ContractDocument {
  const { openapi, paths } = (document ?? {}) as Partial<Record<keyof ContractDocument, unknown>>;
  return typeof openapi === 'string' && openapi.startsWith('3.1.') && typeof paths === 'object' && paths !== null;
}
