import { createHash, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { called } from '../core/callbacks';
import { AuthError } from '../core/errors';
import { escapeUnsafe, loggablePath } from '../core/logger';
import { isObject, NO_OPTIONS } from '../core/objects';
import { option, readOptions, refuseOption, type TableOf } from '../core/options';
import { REASONS } from '../core/reasons';
import { hasUserInfo, parseUrl, withoutSlash } from '../core/urls';
import { headerOf, usesDpop } from '../token/bearer';
import { unitOf } from '../token/fair-queue';
import { checkHeader, parseToken } from '../token/jws';
import { importKey, unsuitable, type VerificationKey } from '../token/keys/key-set';
import { Possession, type BoundRequest } from './possession';
import { ALGORITHMS, readAlgorithms, type Algorithm } from '../token/signature';
import type { JsonObject } from '../net/strict-json';
import { memoryReplayStore, type MemoryReplayStore, type ReplayStore } from './replay-store';

/** How proofs are checked (RFC 9449). */
export interface DpopOptions {
  /**
   * Public URL under which clients reach the root of the app, which the `htu` of a proof begins with. Default: the origin
   * of the gate's `resource`. The Host header is not used: a caller with a proof for another API chooses it.
   */
  readonly baseUrl?: string | undefined;
  /** Accepted signature algorithms of proofs. Default: ES256, ES384, EdDSA (also as Ed25519), PS256, RS256. */
  readonly algorithms?: readonly (`${'RS' | 'PS' | 'ES'}${256 | 384 | 512}` | 'EdDSA' | 'Ed25519')[] | undefined;
  /** Longest accepted age of a proof in seconds, by its `iat`. Default 60. */
  readonly proofMaxAgeSeconds?: number | undefined;
  /**
   * Demands that proofs contain a nonce of this process (RFC 9449 section 9), so that none can be made in advance, and no
   * clock of a client matters. For an API that is one process. Default `false`.
   */
  readonly nonce?: boolean | undefined;
  /** Where used proofs are remembered. Default: in memory, which is enough for one process. */
  readonly replayStore?: ReplayStore | undefined;
}

const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];
const DPOP_FACTORY = 'dpop';
const BASE_URL = 'the public http(s) URL of the root of the app, as clients have it (or set "resource" of the gate)';

const DPOP_OPTIONS = {
  baseUrl: option(BASE_URL, (given) => {
    const fits = typeof given === 'string' && /^https?:\/\/[^?#]+$/i.test(given) && parseUrl(given) !== undefined;
    return fits && !hasUserInfo(given) ? withoutSlash(given) : undefined;
  }),
  algorithms: option(`an array with some of ${ALGORITHMS.join(', ')}`, readAlgorithms, DEFAULT_ALGORITHMS),
  proofMaxAgeSeconds: option.number({ unit: 'seconds', min: 1, max: 600 }, 60),
  nonce: option.boolean(false),
  replayStore: option.withMethods<ReplayStore>(['remember'], 'an object with the method remember'),
} satisfies TableOf<DpopOptions>;

/** How far the clocks of two processes of an API may differ at least, where a tolerance is small or 0. */
const MIN_CLOCK_DIFFERENCE_MS = 20_000;

/**
 * Accepts tokens that are bound to a key by DPoP (RFC 9449), with a proof for each request. Gates that share what this returns
 * accept a proof once.
 *
 * @throws TypeError when an option is wrong; `authenticate()` throws it where neither `baseUrl` nor its `resource` is given
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { dpop } from 'tillgate/possession';
 *
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   possession: [dpop({ baseUrl: 'https://api.example.com' })],
 * });
 * ```
 */
export function dpop(options: DpopOptions = {}): Possession {
  const settings = readOptions(DPOP_FACTORY, options, DPOP_OPTIONS);
  const algorithms: ReadonlySet<Algorithm> = new Set(settings.algorithms);
  const nonces = settings.nonce ? serverNonces() : undefined;
  let memory: MemoryReplayStore | undefined;

  return new Possession({
    confirmation: 'jkt',
    status: () => memory?.status(),
    challenge({ resource }) {
      baseUrlOf(settings.baseUrl, resource);
      return { scheme: 'DPoP', algorithms: settings.algorithms };
    },
    /** RFC 9449 section 4.3. */
    async verify(boundRequest) {
      const { request, token, isTrial, gate } = boundRequest;
      if (!usesDpop(request)) {
        const privateDetail = 'cnf.jkt is not proven: the token came with the Bearer scheme';
        throw new AuthError('sender_constrained', { privateDetail });
      }
      const { clock, clockToleranceMs, resource } = gate;
      const proof = await readProof(boundRequest, algorithms);
      if (proof.method !== request.method) throw invalidProof('htm is not the method of the request');
      const target = request.originalUrl ?? request.url ?? '';
      const baseUrl = baseUrlOf(settings.baseUrl, resource);
      if (!isUrlOf(proof.url, baseUrl, target))
        throw invalidProof(`htu is not ${baseUrl}${escapeUnsafe(loggablePath(target))}`);
      const tokenHash = createHash('sha256').update(token, 'latin1').digest('base64url');
      if (proof.tokenHash !== tokenHash) throw invalidProof('ath is not the hash of the access token');
      const nowMs = clock();
      if (nowMs >= proof.expiresAtMs + clockToleranceMs) throw invalidProof('exp has passed');
      if (nowMs < proof.notBeforeMs - clockToleranceMs) throw invalidProof('nbf is in the future');
      const untilMs = acceptedUntilMs(proof, nowMs, clockToleranceMs);
      const store = settings.replayStore ?? (memory ??= memoryReplayStore(clock, undefined, gate.logger));
      if (!isTrial) await remember(store, proof, untilMs, boundRequest);
      return nonces?.isAging(untilMs, nowMs) ? nonces.make(nowMs) : undefined;
    },
  });

  /** First moment at which a proof would be refused without being remembered. */
  function acceptedUntilMs({ issuedAtMs, nonce }: DpopProof, nowMs: number, clockToleranceMs: number): number {
    if (nonces) {
      const untilMs = nonce === undefined ? undefined : nonces.acceptedUntilMs(nonce, nowMs);
      if (untilMs === undefined) throw new AuthError('dpop_nonce_required', { nonce: nonces.make(nowMs) });
      return untilMs;
    }
    const untilMs = issuedAtMs + 1000 * settings.proofMaxAgeSeconds + clockToleranceMs;
    if (issuedAtMs > nowMs + clockToleranceMs) throw invalidProof('iat is in the future');
    if (nowMs >= untilMs) throw invalidProof('iat is too old');
    return untilMs;
  }
}

/** Without a trailing slash. */
function baseUrlOf(given: string | undefined, resource: string | undefined): string {
  const baseUrl = given ?? (resource === undefined ? undefined : new URL(resource).origin);
  return baseUrl ?? refuseOption({ factory: DPOP_FACTORY, name: 'baseUrl' }, BASE_URL, undefined);
}

/**
 * Reads a DPoP proof and verifies its signature with the key that it contains (RFC 9449 section 4.3, checks 2 to 7).
 *
 * @throws AuthError `invalid_dpop_proof`, `wrong_binding` or `too_many_proofs`
 */
async function readProof(boundRequest: BoundRequest, algorithms: ReadonlySet<Algorithm>): Promise<DpopProof> {
  const { request, bound, caller, gate } = boundRequest;
  try {
    const header = headerOf(request, 'dpop');
    // node:http joins repeated headers with a comma, which no proof contains.
    if (typeof header !== 'string' || header === '') throw invalidProof('the DPoP header is missing');
    const proof = parseToken(header);
    const { algorithm } = checkHeader(proof.header, { algorithms, types: PROOF_TYPES });
    const key = readProofKey(proof.header['jwk'], bound, algorithm);
    await gate.signatures.verify(proof, key, algorithm, caller);
    return { thumbprint: bound, ...readProofClaims(proof.claims) };
  } catch (error) {
    throw asProofRefusal(error);
  }
}

async function remember(store: ReplayStore, proof: DpopProof, untilMs: number, by: BoundRequest): Promise<void> {
  const { thumbprint, id } = proof;
  // One clock may be ahead and another behind. The process that is ahead must not forget what the other still accepts.
  const clockDifferenceMs = Math.max(2 * by.gate.clockToleranceMs, MIN_CLOCK_DIFFERENCE_MS);
  const name = createHash('sha256').update(`${thumbprint}\n${id}`).digest().subarray(0, 16).toString('base64url');
  let isNew: boolean;
  try {
    isNew = await called(() => store.remember(name, untilMs + clockDifferenceMs, unitOf(by.caller)));
  } catch (cause) {
    if (cause instanceof AuthError && cause.reason === 'too_many_proofs') throw cause;
    throw new AuthError('replay_store_unavailable', { cause });
  }
  if (isNew !== true) throw invalidProof('the proof was used before');
}

/** A proof whose signature and form are good; its claims are not compared with the request yet. */
type DpopProof = ReturnType<typeof readProofClaims> & {
  /** SHA-256 thumbprint of its key (RFC 7638). */
  readonly thumbprint: string;
};

const PROOF_TYPES: ReadonlySet<string> = new Set(['dpop+jwt']);
const MAX_ID_LENGTH = 512;
/** Anyone whose issuer binds tokens to its key chooses that key, which must cost less than those of issuers. */
const MAX_PROOF_MODULUS_BITS = 4_096;
/** Members of a thumbprint, in their order (RFC 7638 section 3.2, RFC 8037 section 2). */
const THUMBPRINT_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};
/** In characters of base64url: a coordinate has the length of its curve (RFC 7518 section 6.2.1.2, RFC 8037 section 2). */
const COORDINATE_LENGTHS: Readonly<Record<string, number>> = { 'P-256': 43, 'P-384': 64, 'P-521': 88, Ed25519: 43 };
/** The keys that proofs were signed with, by their thumbprints: a client has one for many requests. */
const keys = new LRUCache<string, VerificationKey>({ max: 5_000 });

/** The reasons of the signature's verification are those of tokens, but a proof was refused. */
function asProofRefusal(error: unknown): unknown {
  if (!(error instanceof AuthError) || REASONS[error.reason].about === 'proof') return error;
  // The client has too many proofs in the queue.
  if (error.status === 429) {
    const { privateDetail, retryAfterSeconds } = error;
    return new AuthError('too_many_proofs', { privateDetail, retryAfterSeconds });
  }
  const { privateDetail = error.reason, cause } = error;
  return new AuthError('invalid_dpop_proof', { privateDetail, cause });
}

function invalidProof(privateDetail: string): AuthError {
  return new AuthError('invalid_dpop_proof', { privateDetail });
}

/**
 * Reads the key of a proof, which has to be the one that the token is bound to: no caller makes us import a key of its
 * choice, which takes up to 0.7 ms, or compute with it.
 */
function readProofKey(jwk: unknown, bound: unknown, algorithm: Algorithm): VerificationKey {
  const why = unsuitable(jwk);
  if (why !== undefined || !isObject(jwk)) throw invalidProof(`jwk: ${why}`);
  const names = THUMBPRINT_MEMBERS[String(jwk['kty'])] ?? [];
  const members: Record<string, unknown> = {};
  for (const name of names) {
    const value = jwk[name];
    const isCoordinate = name === 'x' || name === 'y';
    if (typeof value !== 'string' || (isCoordinate && value.length !== COORDINATE_LENGTHS[String(jwk['crv'])])) {
      throw invalidProof('jwk: its key material is broken');
    }
    members[name] = value;
  }
  const thumbprint = hash('sha256', JSON.stringify(members), 'base64url');
  if (thumbprint !== bound)
    throw new AuthError('wrong_binding', { privateDetail: 'the key of the proof is not that of cnf.jkt' });
  const key = keys.get(thumbprint, NO_OPTIONS) ?? importKey(members, MAX_PROOF_MODULUS_BITS);
  if (typeof key === 'string') throw invalidProof(`jwk: ${key}`);
  keys.set(thumbprint, key, NO_OPTIONS);
  const { alg } = jwk;
  if (!key.algorithms.includes(algorithm) || (alg !== undefined && !readAlgorithms([alg])?.includes(algorithm))) {
    throw invalidProof('alg does not fit the key');
  }
  return key;
}

/** `nbf` and `exp` (RFC 7519 section 4.1) are checked where a proof has them. */
function readProofClaims(claims: JsonObject) {
  const id = requiredText(claims, 'jti');
  if (id.length > MAX_ID_LENGTH) throw invalidProof(`jti is longer than ${MAX_ID_LENGTH} characters`);
  return {
    id,
    method: requiredText(claims, 'htm'),
    url: requiredText(claims, 'htu'),
    issuedAtMs: timeMs(claims, 'iat'),
    notBeforeMs: timeMs(claims, 'nbf', -Infinity),
    expiresAtMs: timeMs(claims, 'exp', Infinity),
    tokenHash: requiredText(claims, 'ath'),
    nonce: 'nonce' in claims ? requiredText(claims, 'nonce') : undefined,
  };
}

function timeMs(claims: JsonObject, name: string, absentMs?: number): number {
  const value = claims[name];
  if (value === undefined && absentMs !== undefined) return absentMs;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalidProof(`${name} is not a number`);
  return value * 1000;
}

function requiredText(claims: JsonObject, name: string): string {
  const value = claims[name];
  if (typeof value === 'string' && value !== '') return value;
  throw invalidProof(`${name} is missing or not a string`);
}

/** Segments that a URL parser removes, but a router may not. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i;
/** What a URL parser drops, or reads as another character: `\` as `/`, for a router another path. */
const AMBIGUOUS = /[^\x21-\x7e]|[\\#]/;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * Whether `htu` of a proof is the URL of a request below the public URL of its app, without query and fragment (RFC 9449
 * section 4.3, check 9). The proof may have any spelling of that URL (RFC 3986 sections 6.2.2 and 6.2.3), but routers
 * match the characters that were sent: where the request encodes some without need, the proof has to do the same.
 */
function isUrlOf(htu: string, baseUrl: string, target: string): boolean {
  const [path = ''] = target.split('?', 1);
  if (!path.startsWith('/') || DOT_SEGMENT.test(path) || AMBIGUOUS.test(path)) return false;
  const [named, requested] = [parse(htu), parse(baseUrl + path)];
  if (!named || !requested || named.origin !== requested.origin) return false;
  return named.path === requested.path || decodeUnreserved(named.path) === requested.path;
}

/** The beginning of an http(s) URL. Node converts a host of many characters (RFC 3492) in quadratic time, and none is this long. */
const HTTP_HOST = /^https?:\/\/[^/?#\\]{1,1000}(?:[/?#\\]|$)/i;

/** `undefined` for anything but an http(s) URL. */
function parse(url: string): { readonly origin: string; readonly path: string } | undefined {
  const parsed = HTTP_HOST.test(url) ? parseUrl(url) : undefined;
  if (!parsed) return undefined;
  const { origin, pathname } = parsed;
  return { origin, path: pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => encoded.toUpperCase()) };
}

function decodeUnreserved(path: string): string {
  return path.replace(/%[0-9A-F]{2}/g, (encoded) => {
    const character = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return UNRESERVED.test(character) ? character : encoded;
  });
}

/** How long a nonce is accepted. */
const NONCE_LIFETIME_MS = 300_000;
/** How far the clock may step back after a nonce was made. */
const CLOCK_DIFFERENCE_MS = 10_000;
const TIME_BYTES = 6;
const MAC_BYTES = 16;

/** Makes and checks the nonces of a server (RFC 9449 section 9). Nothing is stored: a nonce is a time with its MAC. */
function serverNonces() {
  const secret = randomBytes(32);

  function macOf(time: Buffer): Buffer {
    const hmac = createHmac('sha256', secret).update('tillgate dpop nonce').update(time);
    return hmac.digest().subarray(0, MAC_BYTES);
  }

  return {
    make(nowMs: number): string {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeUIntBE(Math.max(0, Math.floor(nowMs)), 0, TIME_BYTES);
      return Buffer.concat([time, macOf(time)]).toString('base64url');
    },
    /** First moment in ms at which a nonce is no longer accepted; `undefined` when it is not accepted now. */
    acceptedUntilMs(nonce: string, nowMs: number): number | undefined {
      const bytes = Buffer.from(nonce, 'base64url');
      if (bytes.length !== TIME_BYTES + MAC_BYTES) return undefined;
      const time = bytes.subarray(0, TIME_BYTES);
      if (!timingSafeEqual(bytes.subarray(TIME_BYTES), macOf(time))) return undefined;
      const madeMs = time.readUIntBE(0, TIME_BYTES);
      const untilMs = madeMs + NONCE_LIFETIME_MS;
      return madeMs <= nowMs + CLOCK_DIFFERENCE_MS && nowMs < untilMs ? untilMs : undefined;
    },
    /** Whether the client should be given a newer nonce with the response, by the end of the one that it sent. */
    isAging: (untilMs: number, nowMs: number): boolean => untilMs - nowMs < NONCE_LIFETIME_MS / 2,
  };
}
