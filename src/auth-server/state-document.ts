import { isGeneration } from '../generation/generation';
import type { ClientRow, KeyRing, State, Tombstone } from './state';

/** Format of the document; a later one that older code cannot read gets the next number. */
const FORMAT = 1;

/** Writes a state as the text that is kept on disk. */
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
 * @throws Error that says what is wrong with it; never quotes it, for it holds the private key.
 */
export function parseState(text: string): State {
  const document = parseJson(text);
  if (!isObject(document)) throw new Error('it holds no JSON object');
  if (document['format'] !== FORMAT) throw new Error(`its "format" is not ${FORMAT}: another version has written it`);
  const { revision, keys, clients, tombstones } = document;
  if (!isGeneration(revision)) throw new Error('its "revision" is no whole number');
  if (!isKeyRing(keys)) throw new Error('its "keys" are incomplete');
  if (!Array.isArray(clients) || !clients.every(isClientRow))
    throw new Error('an entry of its "clients" is incomplete');
  if (!Array.isArray(tombstones) || !tombstones.every(isTombstone)) {
    throw new Error('an entry of its "tombstones" is incomplete');
  }
  return { revision, keys, clients: byId(clients), tombstones: byId(tombstones) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is no valid JSON');
  }
}

function byId<Row extends { readonly clientId: string }>(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.clientId, row]));
}

function isKeyRing(value: unknown): value is KeyRing {
  if (!isObject(value) || !isObject(value['signing']) || !Array.isArray(value['retired'])) return false;
  const { signing, retired } = value;
  return (
    isNamedKey(signing) &&
    isObject(signing['privateJwk']) &&
    retired.every((key) => isNamedKey(key) && isObject(key['publicJwk']) && isGeneration(key['publishedUntilMs']))
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

function isArrayOf(value: unknown, fits: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(fits);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
