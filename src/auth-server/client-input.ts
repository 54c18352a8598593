import { describe, didYouMean } from '../core/options';
import type { ClientPatch, NewClient, RotationOptions } from './client';
import { invalidRequest } from './refused-request';
import { parseScope } from './scope';

/** Scopes that may be registered; `undefined`: any. */
export type KnownScopes = readonly string[] | undefined;

type Members = Readonly<Record<string, unknown>>;

const LONGEST_DESCRIPTION = 1_000;

/**
 * Reads the body of a registration.
 *
 * @throws RefusedRequest 400 that says what was got, what is expected and what to do.
 */
export function readNewClient(body: unknown, known: KnownScopes): NewClient {
  const members = readMembers(body, ['client_id', 'description', 'scope']);
  return {
    clientId: readClientId(members['client_id']),
    description: members['description'] === undefined ? '' : readDescription(members['description']),
    scopes: readScope(members['scope'], known),
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
export function readRotation(body: unknown): RotationOptions {
  const members = body === undefined ? {} : readMembers(body, ['keep_tokens', 'revoke_previous']);
  return {
    keepTokens: readFlag('keep_tokens', members['keep_tokens'] ?? false),
    revokePrevious: readFlag('revoke_previous', members['revoke_previous'] ?? false),
  };
}

function readMembers(body: unknown, known: readonly string[]): Members {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    const got = body === undefined ? 'no body' : describe(body);
    throw invalidRequest(`The body must be a JSON object with ${known.join(', ')}; got ${got}.`);
  }
  for (const name of Object.keys(body)) {
    if (!known.includes(name)) throw invalidRequest(`Unknown member ${describe(name)}${didYouMean(name, known)}`);
  }
  return body as Members;
}

/** A client id may have any VSCHAR (RFC 6749 appendix A.1); blanks at its ends and dot segments would not survive a URL. */
function readClientId(value: unknown): string {
  const fits = typeof value === 'string' && /^[\x20-\x7e]{1,128}$/.test(value) && value.trim() === value;
  if (fits && value !== '.' && value !== '..') return value;
  throw invalidRequest(
    'client_id must be a string of 1 to 128 printable ASCII characters, without blanks at its ends, and not "." or ' +
      `".."; got ${describe(value)}. Choose another id, such as "pos-terminal".`,
  );
}

function readDescription(value: unknown): string {
  if (typeof value !== 'string') throw invalidRequest(`description must be a string; got ${describe(value)}.`);
  if (value.length > LONGEST_DESCRIPTION) {
    throw invalidRequest(
      `description must have at most ${LONGEST_DESCRIPTION} characters; got ${value.length}. Shorten it.`,
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
  if (unknown !== undefined)
    throw invalidRequest(`Unknown scope ${describe(unknown)}${didYouMean(unknown, known ?? [])}`);
  return scopes;
}

function readFlag(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidRequest(`${name} must be true or false; got ${describe(value)}.`);
  return value;
}
