import { readFile } from 'node:fs/promises';
import { isObject } from '../../core/objects';
import { isGeneration } from '../../generation/generation';
import type { ClientRow, KeyRing, State, Tombstone } from './state';

/** Format of the file; a later one that older code cannot read gets the next number. */
const FORMAT = 1;

/**
 * Reads the state in a file; `undefined` when there is no file.
 *
 * @throws Error that names the file, when it cannot be used.
 */
export async function readState(path: string): Promise<State | undefined> {
  try {
    return parseState(await readFile(path, 'utf8'));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    const reason = (cause as Error).message;
    throw new Error(
      `the state of the token server in ${path} cannot be used: ${reason}; restore it, or delete it to begin anew`,
      { cause },
    );
  }
}

/** The text of the file. */
export function serializeState({ revision, clients, tombstones, keys }: State): string {
  const document = {
    format: FORMAT,
    revision,
    keys,
    clients: [...clients.values()],
    tombstones: [...tombstones.values()],
  };
  return `${JSON.stringify(document)}\n`;
}

/**
 * Reads the text that `serializeState` has written.
 *
 * @throws Error that says what is wrong; it never quotes the text, which holds the private key.
 */
export function parseState(text: string): State {
  const document = parseJson(text);
  if (!isObject(document)) throw new Error('it does not hold a JSON object');
  if (document['format'] !== FORMAT) throw new Error(`its "format" is not ${FORMAT}: another version has written it`);
  const { revision, keys, clients, tombstones } = document;
  if (!isGeneration(revision)) throw new Error('its "revision" is not a whole number');
  if (!isKeyRing(keys)) throw new Error('its "keys" are incomplete');
  if (!isArrayOf(clients, isClientRow)) throw new Error('an entry of its "clients" is incomplete');
  if (!isArrayOf(tombstones, isTombstone)) throw new Error('an entry of its "tombstones" is incomplete');
  return { revision, keys, clients: byId(clients), tombstones: byId(tombstones) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is not valid JSON');
  }
}

function byId<Row extends { readonly clientId: string }>(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.clientId, row]));
}

function isKeyRing(value: unknown): value is KeyRing {
  if (!isObject(value)) return false;
  const { signing, retired } = value;
  return (
    isNamedKey(signing) &&
    isObject(signing['privateJwk']) &&
    isArrayOf(retired, (key) => isNamedKey(key) && isObject(key['publicJwk']) && isGeneration(key['publishedUntilMs']))
  );
}

function isNamedKey(value: unknown): value is Record<string, unknown> {
  return isObject(value) && typeof value['kid'] === 'string' && (value['alg'] === 'RS256' || value['alg'] === 'ES256');
}

function isClientRow(value: unknown): value is ClientRow {
  return (
    isTombstone(value) &&
    isObject(value) &&
    typeof value['description'] === 'string' &&
    isArrayOf(value['scopes'], (scope) => typeof scope === 'string') &&
    typeof value['disabled'] === 'boolean' &&
    isArrayOf(value['secrets'], isStoredSecret) &&
    isGeneration(value['createdMs']) &&
    isGeneration(value['updatedMs'])
  );
}

function isTombstone(value: unknown): value is Tombstone {
  return (
    isObject(value) &&
    typeof value['clientId'] === 'string' &&
    [value['generation'], value['version'], value['movedAt']].every(isGeneration)
  );
}

function isStoredSecret(value: unknown): boolean {
  if (!isObject(value) || typeof value['id'] !== 'string' || !isGeneration(value['createdMs'])) return false;
  return typeof value['hash'] === 'string' && /^[0-9a-f]{64}$/.test(value['hash']);
}

function isArrayOf<Entry>(value: unknown, fits: (entry: unknown) => entry is Entry): value is Entry[];
function isArrayOf(value: unknown, fits: (entry: unknown) => boolean): value is unknown[];
function isArrayOf(value: unknown, fits: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(fits);
}
