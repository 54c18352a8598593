import { createHash, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../../core/errors';
import type { Clock } from '../../core/clock';
import { escapeUnsafe, loggablePath } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { isObject, NO_OPTIONS } from '../../core/objects';
import { option, refuseOption } from '../../core/options';
import type { TableOf } from '../../core/options';
import type { Reason } from '../../core/reasons';
import { hasUserInfo, parseUrl, withoutSlash } from '../../core/urls';
import { headerOf } from '../bearer';
import type { TokenRequest } from '../bearer';
import type { Caller } from '../fair-queue';
import { checkHeader, parseToken } from '../jws';
import { importKey, unsuitable } from '../keys/key-set';
import type { VerificationKey } from '../keys/key-set';
import { ALGORITHMS, readAlgorithms } from '../signature';
import type { Algorithm } from '../signature';
import type { SignatureVerifier } from '../signature';
import type { JsonObject } from '../strict-json';
import { isInMemory, memoryReplayStore } from './replay-store';
import type { ReplayStore } from './replay-store';

/** How tokens are accepted that are bound to a key by DPoP (RFC 9449). */
export interface DpopOptions {
  /**
   * Public URL under which clients reach the root of the app, which the `htu` of a proof begins with. Default: the origin
   * of `resource`. The Host header is not used: whoever has a proof for another API chooses it.
   */
  readonly baseUrl?: string | undefined;
  /** Refuses tokens that are not bound to a key. Default `false`: bearer tokens are accepted as well. */
  readonly required?: boolean | undefined;
  /** Accepted signature algorithms of proofs. Default: ES256, ES384, EdDSA (also as Ed25519), PS256, RS256. */
  readonly algorithms?: readonly (`${'RS' | 'PS' | 'ES'}${256 | 384 | 512}` | 'EdDSA' | 'Ed25519')[] | undefined;
  /** Longest accepted age of a proof in seconds, by its `iat`. Default 60. */
  readonly proofMaxAgeSeconds?: number | undefined;
  /**
   * Demands that proofs contain a nonce of this server (RFC 9449 section 9), so that none can be made in advance, and no
   * clock of a client matters. `true` for one process; several share a secret of at least 32 characters. Default `false`.
   */
  readonly nonce?: boolean | { readonly secret: string } | undefined;
  /** Where used proofs are remembered. Default: in memory, which is enough for one process. */
  readonly replayStore?: ReplayStore | undefined;
}

const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];
const BASE_URL = 'the public http(s) URL of the root of the app, as clients have it (or set "resource")';
const NONCE = option.nested({ secret: option.required(option.secret(32)) });

/** The option `dpop` of a factory; {@link withBaseUrl} completes it. */
export const DPOP_OPTION = option.nested({
  baseUrl: option(BASE_URL, (given) => {
    const fits = typeof given === 'string' && /^https?:\/\/[^?#]+$/i.test(given) && parseUrl(given) !== undefined;
    return fits && !hasUserInfo(given) ? withoutSlash(given) : undefined;
  }),
  required: option.boolean(false),
  algorithms: option(`an array with some of ${ALGORITHMS.join(', ')}`, readAlgorithms, DEFAULT_ALGORITHMS),
  proofMaxAgeSeconds: option.number({ unit: 'seconds', min: 1, max: 600 }, 60),
  // `true`: with a secret of this process.
  nonce: option(NONCE.expected, (given, at) => (typeof given === 'boolean' ? given : NONCE.read(given, at)), false),
  replayStore: option.withMethods<ReplayStore>(['remember'], 'an object with the method remember'),
} satisfies TableOf<DpopOptions>);

type DpopValues = NonNullable<ReturnType<typeof DPOP_OPTION.read>>;

/** Checked options. */
export interface DpopSettings extends DpopValues {
  /** Without a trailing slash. */
  readonly baseUrl: string;
}

/**
 * Completes the checked option `dpop`.
 *
 * @param resource - the option `resource`, whose origin is the default of `baseUrl`
 * @throws TypeError where neither says the URL
 */
export function withBaseUrl(factory: string, dpop: DpopValues, resource: string | undefined): DpopSettings {
  const baseUrl = dpop.baseUrl ?? (resource === undefined ? undefined : new URL(resource).origin);
  return { ...dpop, baseUrl: baseUrl ?? refuseOption({ factory, name: 'dpop.baseUrl' }, BASE_URL, undefined) };
}

/** How far the clocks of two processes of an API may differ at least, where a tolerance is small or 0. */
const MIN_CLOCK_DIFFERENCE_MS = 20_000;

/** Verifies the proofs of one gate. */
export class DpopVerifier {
  readonly #settings: DpopSettings;
  readonly #signatures: SignatureVerifier;
  readonly #algorithms: ReadonlySet<Algorithm>;
  readonly #clock: Clock;
  readonly #clockToleranceMs: number;
  readonly #replays: ReplayStore;
  readonly #nonces: DpopNonces | undefined;

  constructor(
    settings: DpopSettings,
    signatures: SignatureVerifier,
    clock: Clock,
    clockToleranceMs: number,
    logger: Logger,
  ) {
    const { nonce } = settings;
    this.#settings = settings;
    this.#signatures = signatures;
    this.#algorithms = new Set(settings.algorithms);
    this.#clock = clock;
    this.#clockToleranceMs = clockToleranceMs;
    this.#replays = settings.replayStore ?? memoryReplayStore({ clock });
    this.#nonces = nonce ? new DpopNonces(clock, nonce === true ? randomBytes(32) : nonce.secret) : undefined;
    if (typeof nonce === 'object' && isInMemory(this.#replays)) {
      logger.warn(
        {},
        'dpop.nonce.secret is for several processes, but dpop.replayStore is in memory: ' +
          'each process accepts a proof once; use redisReplayStore() of tillgate/dpop',
      );
    }
  }

  /**
   * Checks the proof of a request (RFC 9449 section 4.3).
   *
   * @param bound - thumbprint of the key that the token is bound to
   * @param caller - counts as the client of the token
   * @param isTrial - does not remember the proof
   * @returns the nonce that the response should carry, where the one of the proof is aging (RFC 9449 section 8.2)
   */
  async verify(
    request: TokenRequest,
    token: string,
    bound: unknown,
    caller: Caller & { readonly client: string },
    isTrial = false,
  ): Promise<string | undefined> {
    const { baseUrl } = this.#settings;
    const proof = await this.#verifyProof(proofOf(request), bound, caller);
    if (proof.method !== request.method) throw invalidProof('htm is not the method of the request');
    const target = request.originalUrl ?? request.url ?? '';
    if (!isUrlOf(proof.url, baseUrl, target)) throw invalidProof(`htu is not ${baseUrl}${loggable(target)}`);
    const tokenHash = createHash('sha256').update(token, 'latin1').digest('base64url');
    if (proof.tokenHash !== tokenHash) throw invalidProof('ath is not the hash of the access token');
    const nowMs = this.#clock();
    if (nowMs >= proof.expiresAtMs + this.#clockToleranceMs) throw invalidProof('exp has passed');
    if (nowMs < proof.notBeforeMs - this.#clockToleranceMs) throw invalidProof('nbf is in the future');
    const untilMs = this.#acceptedUntilMs(proof, nowMs);
    if (!isTrial) await this.#remember(proof, untilMs, caller.client);
    return this.#nonces?.isAging(untilMs) ? this.#nonces.make() : undefined;
  }

  /** The nonce for a response with `dpop_nonce_required`. */
  nonce(): string | undefined {
    return this.#nonces?.make();
  }

  /**
   * Reads a DPoP proof and verifies its signature with the key that it contains (RFC 9449 section 4.3, checks 2 to 7).
   *
   * @throws AuthError `invalid_dpop_proof`, `wrong_binding` or `too_many_proofs`
   */
  async #verifyProof(raw: string, bound: unknown, caller: Caller): Promise<DpopProof> {
    try {
      const proof = parseToken(raw);
      const { algorithm } = checkHeader(proof.header, { algorithms: this.#algorithms, types: PROOF_TYPES });
      const key = readKey(proof.header['jwk'], bound, algorithm);
      const thumbprint = bound as string;
      await this.#signatures.verify(proof, key, algorithm, caller);
      return { thumbprint, ...readClaims(proof.claims) };
    } catch (error) {
      throw asProofRefusal(error);
    }
  }

  /** First moment at which a proof would be refused without being remembered. */
  #acceptedUntilMs({ issuedAtMs, nonce }: DpopProof, nowMs: number): number {
    if (this.#nonces) {
      const untilMs = nonce === undefined ? undefined : this.#nonces.acceptedUntilMs(nonce);
      if (untilMs === undefined) throw new AuthError('dpop_nonce_required');
      return untilMs;
    }
    const untilMs = issuedAtMs + 1000 * this.#settings.proofMaxAgeSeconds + this.#clockToleranceMs;
    if (issuedAtMs > nowMs + this.#clockToleranceMs) throw invalidProof('iat is in the future');
    if (nowMs >= untilMs) throw invalidProof('iat is too old');
    return untilMs;
  }

  async #remember({ thumbprint, id }: DpopProof, untilMs: number, client: string): Promise<void> {
    // One clock may be ahead and another behind. The process that is ahead must not forget what the other still accepts.
    const clockDifferenceMs = Math.max(2 * this.#clockToleranceMs, MIN_CLOCK_DIFFERENCE_MS);
    const name = createHash('sha256').update(`${thumbprint}\n${id}`).digest().subarray(0, 16).toString('base64url');
    let isNew: boolean;
    try {
      isNew = await this.#replays.remember(name, untilMs + clockDifferenceMs, client);
    } catch (cause) {
      if (cause instanceof AuthError && cause.reason === 'too_many_proofs') throw cause;
      throw new AuthError('replay_store_unavailable', { cause });
    }
    if (isNew !== true) throw invalidProof('the proof was used before');
  }
}

/** Without query, without tokens, and without characters that could forge a line of a log. */
function loggable(target: string): string {
  return escapeUnsafe(loggablePath(target));
}

function proofOf(request: TokenRequest): string {
  const proof = headerOf(request, 'dpop');
  // node:http joins repeated headers with a comma, which no proof contains.
  if (typeof proof === 'string' && proof !== '') return proof;
  throw invalidProof('the DPoP header is missing');
}

/** A proof whose signature and form are good; its claims are not compared with the request yet. */
interface DpopProof {
  /** SHA-256 thumbprint of its key (RFC 7638). */
  readonly thumbprint: string;
  readonly id: string;
  readonly method: string;
  readonly url: string;
  readonly issuedAtMs: number;
  /** `nbf` and `exp` (RFC 7519 section 4.1), which a proof need not have. */
  readonly notBeforeMs: number;
  readonly expiresAtMs: number;
  readonly tokenHash: string;
  readonly nonce: string | undefined;
}

const PROOF_TYPES: ReadonlySet<string> = new Set(['dpop+jwt']);
/** Refusals that are passed on as they are; all others become `invalid_dpop_proof`. */
const OWN_REASONS: readonly Reason[] = ['invalid_dpop_proof', 'wrong_binding'];
const MAX_ID_LENGTH = 512;
/** Anyone whose issuer binds tokens to its key chooses that key, which must cost less than those of issuers. */
const MAX_MODULUS_BITS = 4_096;
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
  if (!(error instanceof AuthError) || OWN_REASONS.includes(error.reason)) return error;
  // The client has too many proofs in the queue.
  if (error.status === 429) return new AuthError('too_many_proofs', error);
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
function readKey(jwk: unknown, bound: unknown, algorithm: Algorithm): VerificationKey {
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
  if (thumbprint !== bound) throw new AuthError('wrong_binding');
  const key = keys.get(thumbprint, NO_OPTIONS) ?? importKey(members, MAX_MODULUS_BITS);
  if (typeof key === 'string') throw invalidProof(`jwk: ${key}`);
  keys.set(thumbprint, key, NO_OPTIONS);
  const { alg } = jwk;
  if (!key.algorithms.includes(algorithm) || (alg !== undefined && !readAlgorithms([alg])?.includes(algorithm))) {
    throw invalidProof('alg does not fit the key');
  }
  return key;
}

function readClaims(claims: JsonObject): Omit<DpopProof, 'thumbprint'> {
  const id = text(claims, 'jti');
  if (id.length > MAX_ID_LENGTH) throw invalidProof(`jti is longer than ${MAX_ID_LENGTH} characters`);
  return {
    id,
    method: text(claims, 'htm'),
    url: text(claims, 'htu'),
    issuedAtMs: timeMs(claims, 'iat'),
    notBeforeMs: timeMs(claims, 'nbf', -Infinity),
    expiresAtMs: timeMs(claims, 'exp', Infinity),
    tokenHash: text(claims, 'ath'),
    nonce: 'nonce' in claims ? text(claims, 'nonce') : undefined,
  };
}

function timeMs(claims: JsonObject, name: string, absentMs?: number): number {
  const value = claims[name];
  if (value === undefined && absentMs !== undefined) return absentMs;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalidProof(`${name} is not a number`);
  return value * 1000;
}

function text(claims: JsonObject, name: string): string {
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

/** `undefined` for anything but an http(s) URL. */
function parse(url: string): { readonly origin: string; readonly path: string } | undefined {
  const parsed = /^https?:\/\//i.test(url) ? parseUrl(url) : undefined;
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
/** How far the clocks of the processes that share a secret may differ. */
const CLOCK_DIFFERENCE_MS = 10_000;
const TIME_BYTES = 6;
const MAC_BYTES = 16;

/** Makes and checks the nonces of a server (RFC 9449 section 9). Nothing is stored: a nonce is a time with its MAC. */
class DpopNonces {
  readonly #clock: Clock;
  readonly #secret: string | Buffer;

  /** @param secret - shared by all processes of an API */
  constructor(clock: Clock, secret: string | Buffer) {
    this.#clock = clock;
    this.#secret = secret;
  }

  /** A nonce of now. */
  make(): string {
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUIntBE(Math.max(0, Math.floor(this.#clock())), 0, TIME_BYTES);
    return Buffer.concat([time, this.#mac(time)]).toString('base64url');
  }

  /** First moment in ms at which a nonce is no longer accepted; `undefined` when it is not accepted now. */
  acceptedUntilMs(nonce: string): number | undefined {
    const madeMs = this.#timeOf(nonce);
    if (madeMs === undefined || madeMs > this.#clock() + CLOCK_DIFFERENCE_MS) return undefined;
    const untilMs = madeMs + NONCE_LIFETIME_MS;
    return this.#clock() < untilMs ? untilMs : undefined;
  }

  /** Whether the client should be given a newer nonce with the response, by the end of the one that it sent. */
  isAging(untilMs: number): boolean {
    return untilMs - this.#clock() < NONCE_LIFETIME_MS / 2;
  }

  #mac(time: Buffer): Buffer {
    const hmac = createHmac('sha256', this.#secret).update('tillgate dpop nonce').update(time);
    return hmac.digest().subarray(0, MAC_BYTES);
  }

  /** Time at which a nonce was made; `undefined` when its MAC is wrong. */
  #timeOf(nonce: string): number | undefined {
    const bytes = Buffer.from(nonce, 'base64url');
    if (bytes.length !== TIME_BYTES + MAC_BYTES) return undefined;
    const time = bytes.subarray(0, TIME_BYTES);
    return timingSafeEqual(bytes.subarray(TIME_BYTES), this.#mac(time)) ? time.readUIntBE(0, TIME_BYTES) : undefined;
  }
}
