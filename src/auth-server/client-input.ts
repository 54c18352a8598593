import { isObject } from '../core/objects';
import { describe, didYouMean } from '../core/options';
import { ALL_CLIENTS } from '../generation/log';
import { isScopeToken } from '../token/scopes';
import { invalidRequest } from './errors';
import type { ClientPatch, NewClient, RotationOptions } from './client';

/** Scopes that may be registered; `undefined`: any. */
type KnownScopes = readonly string[] | undefined;

const MAX_DESCRIPTION_LENGTH = 1_000;

/**
 * Reads the body of a registration.
 *
 * @throws RequestError 400 that says what was got, what is expected and what to do.
 */
export function readNewClient(body: unknown, known: KnownScopes): NewClient {
  const { client_id, description = '', scope } = readMembers(body, ['client_id', 'description', 'scope']);
  return {
    clientId: readClientId(client_id),
    description: readDescription(description),
    scopes: readScope(scope, known),
  };
}

/** Reads the body of a change; see `readNewClient`. */
export function readPatch(body: unknown, known: KnownScopes): ClientPatch {
  const { description, scope, disabled } = readMembers(body, ['description', 'scope', 'disabled']);
  return {
    ...(description !== undefined && { description: readDescription(description) }),
    ...(scope !== undefined && { scopes: readScope(scope, known) }),
    ...(disabled !== undefined && { disabled: readFlag('disabled', disabled) }),
  };
}

/** Reads the body of a rotation, which may be absent; see `readNewClient`. */
export function readRotation(body: unknown = {}): RotationOptions {
  const { keep_tokens = false, revoke_previous = false } = readMembers(body, ['keep_tokens', 'revoke_previous']);
  return {
    keepTokens: readFlag('keep_tokens', keep_tokens),
    revokePrevious: readFlag('revoke_previous', revoke_previous),
  };
}

/** The scopes of a `scope` value (RFC 6749 section 3.3), each once and in order; `undefined` when it breaks the grammar. */
export function parseScope(value: string): readonly string[] | undefined {
  const scopes = value.split(' ');
  return scopes.every(isScopeToken) ? [...new Set(scopes)] : undefined;
}

function readMembers<Name extends string>(body: unknown, known: readonly Name[]): Partial<Record<Name, unknown>> {
  if (!isObject(body)) {
    const got = body === undefined ? 'no body' : describe(body);
    throw invalidRequest(`The body must be a JSON object with ${known.join(', ')}; got ${got}.`);
  }
  for (const name of Object.keys(body)) {
    if (!known.includes(name as Name)) {
      throw invalidRequest(`Unknown member ${describe(name)}${didYouMean(name, known)}`);
    }
  }
  // A copy without a prototype: an inherited member must not count.
  return { __proto__: null, ...body } as Partial<Record<Name, unknown>>;
}

/** Parts of a path, and the id that means all clients. */
const RESERVED = ['.', '..', ALL_CLIENTS];

/** A client id may hold any VSCHAR (RFC 6749 appendix A.1), except what would not survive in a URL. */
function readClientId(value: unknown): string {
  const fits = typeof value === 'string' && /^[\x20-\x7e]{1,128}$/.test(value) && value.trim() === value;
  if (fits && !RESERVED.includes(value)) return value;
  throw invalidRequest(
    'client_id must be a string of 1 to 128 printable ASCII characters, without blanks at its ends, and not ".", ".." ' +
      `or "*"; got ${describe(value)}. Choose another id, such as "pos-terminal".`,
  );
}

function readDescription(value: unknown): string {
  if (typeof value !== 'string') throw invalidRequest(`description must be a string; got ${describe(value)}.`);
  if (value.length > MAX_DESCRIPTION_LENGTH) {
    throw invalidRequest(
      `description must have at most ${MAX_DESCRIPTION_LENGTH} characters; got ${value.length}. Shorten it.`,
    );
  }
  if (/\p{Cc}/u.test(value)) {
    throw invalidRequest('description must not hold control characters, such as line breaks and tabs; leave them out.');
  }
  return value;
}

function readScope(value: unknown, known: KnownScopes): readonly string[] {
  const scopes = typeof value === 'string' ? parseScope(value) : undefined;
  if (!scopes) {
    throw invalidRequest(
      'scope must be a string of one or more scopes, separated by single spaces, such as "orders:read orders:write"; ' +
        `got ${describe(value)}.`,
    );
  }
  const unknown = known && scopes.find((scope) => !known.includes(scope));
  if (unknown === undefined) return scopes;
  throw invalidRequest(`Unknown scope ${describe(unknown)}${didYouMean(unknown, known ?? [])}`);
}

function readFlag(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidRequest(`${name} must be true or false; got ${describe(value)}.`);
  return value;
}
