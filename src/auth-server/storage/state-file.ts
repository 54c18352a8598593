import { readFile } from 'node:fs/promises';
import { isObject } from '../../core/objects';
import { isGeneration } from '../../generation/generation';
import type { ClientRow, KeyRing, SigningAlgorithm, State, StoredKey, StoredSecret } from './state';

/** Format of the file; a later one that older code cannot read gets the next number. */
const FORMAT = 2;
/** Has members that are not read any more. */
const EARLIER_FORMAT = 1;

/** Reads the state in a file, if there is one; throws an Error that names the file when it cannot be used. */
export async function readState(path: string): Promise<State | undefined> {
  try {
    return parseState(await readFile(path, 'utf8'));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(
      `the state of the token server in ${path} cannot be used: ${message}; restore it, or delete it to begin anew`,
      { cause },
    );
  }
}

/** The text of the file. */
export function serializeState({ keys, clients }: State): string {
  return `${JSON.stringify({ format: FORMAT, keys, clients: [...clients.values()] })}\n`;
}

/** Reads the text of a file; throws an Error that says what is wrong but never quotes the text: it holds the private key. */
export function parseState(text: string): State {
  const document = parseJson(text);
  if (!isObject(document)) throw new Error('it does not hold a JSON object');
  const { format, keys, clients } = document;
  if (format !== FORMAT && format !== EARLIER_FORMAT)
    throw new Error(`its "format" is not ${EARLIER_FORMAT} or ${FORMAT}: another version has written it`);
  if (!isKeyRing(keys)) throw new Error('its "keys" are incomplete');
  if (!isClients(clients)) throw new Error('an entry of its "clients" is incomplete');
  return { keys, clients: new Map(clients.map((row) => [row.clientId, row])) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is not valid JSON');
  }
}

type Check<Type> = (value: unknown) => value is Type;

const isText = (value: unknown): value is string => typeof value === 'string';
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isDigest = (value: unknown): value is string => isText(value) && /^[0-9a-f]{64}$/.test(value);
const isAlgorithm = (value: unknown): value is SigningAlgorithm => value === 'RS256' || value === 'ES256';

function objectOf<Type>(members: { readonly [Name in keyof Type]: Check<Type[Name]> }): Check<Type> {
  const checks = Object.entries<(value: unknown) => boolean>(members);
  return (value): value is Type => isObject(value) && checks.every(([name, check]) => check(value[name]));
}

function listOf<Type>(check: Check<Type>): Check<readonly Type[]> {
  return (value): value is readonly Type[] => Array.isArray(value) && value.every(check);
}

const isKey = objectOf<StoredKey>({ kid: isText, alg: isAlgorithm, jwk: isObject, publishedUntilMs: isGeneration });
const isKeyRing = objectOf<KeyRing>({ signing: isKey, retired: listOf(isKey) });
const isClients = listOf(
  objectOf<ClientRow>({
    clientId: isText,
    description: isText,
    scopes: listOf(isText),
    disabled: isFlag,
    deleted: isFlag,
    generation: isGeneration,
    version: isGeneration,
    secrets: listOf(objectOf<StoredSecret>({ id: isText, hash: isDigest, createdMs: isGeneration })),
    createdMs: isGeneration,
    updatedMs: isGeneration,
  }),
);
