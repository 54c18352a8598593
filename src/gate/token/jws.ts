import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/errors';
import { attempt, isObject, NO_OPTIONS } from '../core/objects';
import { describe } from '../core/words';
import type { Algorithm } from './signature';
import { freezeJson, parseJsonObject, type JsonObject } from '../net/strict-json';

/** A compact JWS (RFC 7515 section 7.1), taken apart but not verified. */
export interface UnverifiedToken {
  /** The whole token. */
  readonly raw: string;
  readonly header: JsonObject;
  readonly claims: JsonObject;
  /** What the signature covers: header and payload as received. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** A header whose algorithm and key id have the right types; their values are not verified. */
export interface UnverifiedHeader {
  readonly algorithm: Algorithm;
  readonly keyId: string | undefined;
}

/** Longest accepted token, in characters. */
export const MAX_TOKEN_LENGTH = 16_384;
const MAX_KEY_ID_LENGTH = 1_024;

/** Shorter parts cannot be a JOSE header: `{"alg":"x"}` in base64url. */
const MIN_HEADER_LENGTH = 15;

/**
 * Whether any server could read a token as a JWS: one that drops empty parts, or parts beyond the third, verifies
 * `h.p.s.` as `h.p.s`. Any other token can only be opaque, a JWE (RFC 7516 section 7.1) included.
 */
export function isJwsShaped(raw: string): boolean {
  const parts = raw.split('.');
  if (parts.length <= 3) return parts.length === 3;
  const filled = parts.filter((part) => part !== '');
  // Header and payload are the first ones that such a server reads: a token with 1,000 parts costs no more than one with three.
  return filled.length === 3 || filled.slice(0, 3).some(isPartOfJws);
}

/** Whether a part is a JSON object, as header and payload of a JWS are. In a JWE only the header is, and it has `enc`. */
function isPartOfJws(part: string): boolean {
  if (part.length < MIN_HEADER_LENGTH || part.length > MAX_TOKEN_LENGTH) return false;
  const value = attempt(() => JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown);
  return isObject(value) && !Object.hasOwn(value, 'enc');
}

/** What tokens with another number of parts usually are. */
const OPAQUE: Readonly<Record<number, string>> = {
  1: ': opaque tokens need the option opaque; many servers make JWTs once the client asks for the audience or resource of this API',
  5: ': an encrypted token (JWE) for the authorization server itself: the client must ask for the audience of this API, and the issuer must sign its tokens and not encrypt them; or use the option opaque',
};

/** Cloud Run and the like replace the signature of a token that they have verified themselves. */
export const REMOVED_SIGNATURE = 'SIGNATURE_REMOVED_BY_GOOGLE';

const OF_STATIC_WEB_APPS =
  ': Azure Static Web Apps (azurewebsites.net) has replaced the Authorization header by a token of its own: the client must call the API at a URL of its own';

/** What has happened to such a token, and what to do. */
export const SIGNATURE_REMOVED =
  'Google has replaced the signature of the token: the platform reads the Authorization header; for Cloud Run the client sends its token in X-Serverless-Authorization, and that of this API in Authorization';

/** What a client sends that has no token: a value in place of its text, or a template that nothing has filled in. */
const EMPTY_VALUE = /^(?:undefined|null|\[object ?\w{1,30}\]|\$?\{{1,2} ?[A-Za-z_.]{1,30} ?\}{1,2}|\$[A-Z_]{1,30})$/;

/** Says that a client has sent such a text; `undefined` for any other. */
export function describeNoToken(text: string): string | undefined {
  return EMPTY_VALUE.test(text) ? `the client sent the text ${text}: it had no token` : undefined;
}

/**
 * Takes a token apart: three parts of canonical base64url (RFC 7515 section 2), header and payload each one strict
 * JSON object.
 *
 * @throws AuthError `malformed_token`
 */
export function parseToken(raw: string): UnverifiedToken {
  if (raw.length > MAX_TOKEN_LENGTH) throw malformedToken(`longer than ${MAX_TOKEN_LENGTH} characters`);
  const parts = raw.split('.');
  if (parts.length === 1) {
    const noToken = describeNoToken(raw);
    if (noToken !== undefined) throw malformedToken(noToken);
  }
  if (parts.length !== 3) throw malformedToken(`${parts.length} parts instead of 3${OPAQUE[parts.length] ?? ''}`);
  const [header, payload, signature] = parts as [string, string, string];
  if (signature === '') throw malformedToken('the signature is empty: the issuer has not signed the token');
  if (signature === REMOVED_SIGNATURE) throw malformedToken(SIGNATURE_REMOVED);
  return {
    raw,
    header: parseHeader(header),
    claims: parsePart(payload, 'payload'),
    signingInput: raw.slice(0, header.length + 1 + payload.length),
    signature: decodePart(signature, 'signature'),
  };
}

/**
 * Checks what a header says against what is accepted, in this order: `alg`, `crit` and `b64`, `typ`, `kid`. Keys that
 * a header brings or points to (`jwk`, `jku`, `x5c`, `x5u`) are never used (RFC 8725 section 3.10).
 *
 * @param issuer - the unverified `iss`, for what the log says
 *
 * @throws AuthError `malformed_token`, `algorithm_not_allowed`, `unsupported_critical_header` or `wrong_type`
 */
export function checkHeader(
  header: JsonObject,
  accepted: {
    readonly algorithms: ReadonlySet<Algorithm>;
    readonly types: Pick<ReadonlySet<string | undefined>, 'has'> & Iterable<string | undefined>;
  },
  issuer?: unknown,
): UnverifiedHeader {
  const { alg, typ, kid } = header;
  if (typeof alg !== 'string') throw malformedToken('alg is not a string');
  if (!accepted.algorithms.has(alg as Algorithm)) {
    const privateDetail = `alg is ${describe(alg, 50)}${secretHint(alg, issuer)}`;
    throw new AuthError('algorithm_not_allowed', { privateDetail });
  }
  // RFC 7515 section 4.1.11: an extension that is not understood must be refused, and none is understood here.
  // `b64` (RFC 7797) changes what is signed, so it is refused even where `crit` fails to name it.
  if ('crit' in header || 'b64' in header) throw new AuthError('unsupported_critical_header');
  if (typ !== undefined && typeof typ !== 'string') throw malformedToken('typ is not a string');
  // RFC 7515 section 4.1.9: `application/` may be left out, and media types compare without regard to case.
  if (!accepted.types.has(typ?.toLowerCase().replace(/^application\//, ''))) {
    const expected = [...accepted.types].map((type) => type ?? 'none').join(' or ');
    const got = typ === undefined ? 'has no typ' : `typ is ${describe(typ, 50)}`;
    throw new AuthError('wrong_type', { privateDetail: `header ${got}, expected ${expected}` });
  }
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > MAX_KEY_ID_LENGTH)) {
    throw malformedToken(`kid is not a string of at most ${MAX_KEY_ID_LENGTH} characters`);
  }
  return { algorithm: alg as Algorithm, keyId: kid };
}

/** Why a token has a signature by a shared secret; empty for any other. */
export function secretHint(alg: unknown, issuer: unknown): string {
  if (!/^HS\d{3}$/.test(String(alg))) return '';
  const isOfPlatform = typeof issuer === 'string' && issuer.endsWith('.azurewebsites.net');
  return isOfPlatform ? OF_STATIC_WEB_APPS : ', which needs a shared secret: have the issuer sign with a key pair';
}

/** All tokens that are signed with one key begin with the same header: it is read once. */
const headers = new LRUCache<string, JsonObject>({ max: 100 });
/** Longer ones are not kept: 100 of these hold 50 KB. */
const MAX_KEPT_HEADER_LENGTH = 512;

function parseHeader(part: string): JsonObject {
  const known = headers.get(part, NO_OPTIONS);
  if (known) return known;
  const header = freezeJson(parsePart(part, 'header'));
  // A copy of the text: a piece of the token would keep the whole token in memory.
  if (part.length <= MAX_KEPT_HEADER_LENGTH)
    headers.set(Buffer.from(part, 'latin1').toString('latin1'), header, NO_OPTIONS);
  return header;
}

function parsePart(part: string, name: string): JsonObject {
  const bytes = decodePart(part, name);
  try {
    return parseJsonObject(bytes);
  } catch {
    // The parser's message quotes the text it stumbled over, which is a piece of the token: it goes nowhere.
    throw malformedToken(`the ${name} is not a strict JSON object`);
  }
}

function decodePart(part: string, name: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  // Node decodes leniently (padding, `+/`, stray bits, any other character): only what encodes back to the same is
  // canonical. Two spellings of one token would be two cache keys and two log lines.
  if (part === '' || bytes.toString('base64url') !== part) throw malformedToken(`the ${name} is not base64url`);
  return bytes;
}

function malformedToken(privateDetail: string): AuthError {
  return new AuthError('malformed_token', { privateDetail });
}
