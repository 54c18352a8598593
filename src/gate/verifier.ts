import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/auth-error';
import { MAX_DELAY_MS, withTimeLimit } from '../core/clock';
import type { GateStatus, IssuerStatus } from '../core/gate-status';
import { NO_OPTIONS, ownMembers } from '../core/objects';
import { isJwsShaped, parseToken } from '../token/jws';
import type { UnverifiedToken } from '../token/jws';
import { SignatureQueue } from '../token/signature';
import type { VerifiedToken } from '../token/verify';
import type { VerificationKey } from '../token/keys/key-set';
import type { Auth } from './options';
import { openIssuer, statusOf } from './issuer';
import type { ClaimsReader, IssuerContext } from './issuer';
import type { GateSettings } from './read-options';

/** Verifies tokens of all issuers of a gate: the gate without HTTP. */
export interface Verifier {
  /**
   * Returns the caller of a token that was verified before, after checking again what changes: its key, its times, its
   * generation. `undefined`: verify it.
   *
   * @throws AuthError when the token is no longer accepted
   */
  verifyCached(token: string): Auth | undefined;
  /**
   * Verifies a token: structure, header, key, signature, claims, generation; an opaque one by introspection instead of
   * its signature. Rejects with the AuthError of the first check that fails.
   *
   * @param address - of the caller: where many opaque tokens wait, each address has the same share
   */
  readonly verify: (token: string, address?: string) => Promise<Auth>;
  /** Whether a known key of the one issuer has signed a token, of whatever type. Decides nothing. */
  readonly isSigned: (token: string) => Promise<boolean>;
  /** Whether the issuer is asked about this token. */
  isIntrospected(token: string): boolean;
  /** Whether the issuer is asked about JWTs too. */
  readonly confirms: boolean;
  /** Resolves once keys and generations are available; rejects if that takes longer than `limitMs`. */
  ready(limitMs?: number): Promise<void>;
  status(): GateStatus;
  close(): Promise<void>;
}

/** Claims that a signature or the issuer's response vouches for. `accepted` is absent while they are refused. */
interface CachedToken {
  readonly context: IssuerContext;
  readonly reader: ClaimsReader;
  readonly claims: Readonly<Record<string, unknown>>;
  accepted?: { readonly verified: VerifiedToken; readonly auth: Auth };
}

interface CachedJws extends CachedToken {
  readonly key: VerificationKey;
}

/** The issuer that is asked about opaque tokens. */
interface OpaqueIssuer {
  readonly context: IssuerContext;
  readonly reader: NonNullable<IssuerContext['introspection']>;
}

/** Opens the issuers of a gate. */
export function openVerifier(settings: GateSettings): Verifier {
  const { clock, verifiedTokens } = settings;
  const signatures = new SignatureQueue();
  const contexts = settings.issuers.map((issuer) => openIssuer(issuer, signatures, settings));
  const byIssuer = new Map(contexts.map((context) => [context.issuer as unknown, context]));
  const cache = verifiedTokens > 0 ? tokenCache<CachedJws>(verifiedTokens) : undefined;
  const [opaque] = contexts.flatMap((context): OpaqueIssuer[] => {
    return context.introspection ? [{ context, reader: context.introspection }] : [];
  });
  const introspected = new WeakMap<object, CachedToken>();
  const confirmed = new WeakMap<object, CachedJws>();

  /** With one issuer its keys decide, so that the signature is checked before any claim; with several, `iss` selects. */
  function contextFor({ claims }: UnverifiedToken): IssuerContext {
    const context = contexts.length === 1 ? contexts[0] : byIssuer.get(claims['iss']);
    if (!context) throw new AuthError('wrong_issuer');
    return context;
  }

  async function verify(token: string, address?: string): Promise<Auth> {
    const trusted =
      opaque && isIntrospected(token)
        ? introspectedToken(opaque, await opaque.reader.introspect(token, address))
        : await verifyJws(parseToken(token), address);
    // Before the first read of the generations has ended, a token waits for it.
    await trusted.context.generations?.settled();
    return accept(trusted);
  }

  async function verifyJws(unverified: UnverifiedToken, address: string | undefined): Promise<CachedToken> {
    const context = contextFor(unverified);
    const { verifier, reader, introspection } = context;
    const key = await verifier.verifySignature(unverified);
    const verified = { context, reader, claims: unverified.claims, key };
    if (introspection?.confirms)
      return confirmedToken(verified, await introspection.introspect(unverified.raw, address));
    // Refused claims are cached too: repeating an expired token costs no signature check each time.
    cache?.set(unverified, verified);
    return verified;
  }

  async function isSigned(token: string): Promise<boolean> {
    try {
      const unverified = parseToken(token);
      return await contextFor(unverified).verifier.isSigned(unverified);
    } catch {
      return false;
    }
  }

  /** Three parts are always verified as a JWS: no spelling of one is decided by introspection. */
  function isIntrospected(token: string): boolean {
    return opaque !== undefined && !isJwsShaped(token);
  }

  /** What is known about an opaque token, from its issuer's response: the same as long as the response is cached. */
  function introspectedToken(issuer: OpaqueIssuer, claims: CachedToken['claims']): CachedToken {
    const known = introspected.get(claims) ?? { ...issuer, claims };
    introspected.set(claims, known);
    return known;
  }

  /** A JWT that its issuer was asked about. What was signed counts; the response adds what a lightweight token leaves out. */
  function confirmedToken(signed: CachedJws, response: CachedToken['claims']): CachedToken {
    const { readScopes, confirms } = signed.context.introspection ?? {};
    if (!readScopes || !confirms) return signed;
    const known = confirmed.get(response);
    if (known) return known;
    const claims = Object.freeze(ownMembers({ ...response, ...signed.claims }));
    const token = { ...signed, reader: { readScopes, verifyClaims: confirms }, claims };
    confirmed.set(response, token);
    return token;
  }

  function cachedToken(token: string): CachedToken | undefined {
    const response = opaque && (opaque.reader.confirms || isIntrospected(token)) ? opaque.reader.get(token) : undefined;
    if (opaque && isIntrospected(token)) return response && introspectedToken(opaque, response);
    const cached = response ? confirmed.get(response) : cache?.get(token);
    if (!cached || cached.context.keys.has(cached.key)) return cached;
    if (response) confirmed.delete(response);
    else cache?.delete(token);
    return undefined;
  }

  function verifyCached(token: string): Auth | undefined {
    const cached = cachedToken(token);
    if (!cached) return undefined;
    const { context, accepted } = cached;
    if (!accepted || !isCurrent(accepted.verified, clock())) {
      return context.generations?.settled() ? undefined : accept(cached);
    }
    const { auth } = accepted;
    if (auth.generation !== undefined) context.generations?.recheck(auth.clientId, auth.generation);
    return auth;
  }

  function status(): GateStatus {
    const issuers = contexts.map(statusOf);
    return { ready: issuers.every(isReady), issuers };
  }

  return {
    verify,
    verifyCached,
    isSigned,
    isIntrospected,
    confirms: opaque?.reader.confirms !== undefined,
    async ready(limitMs) {
      const sources = contexts.flatMap(({ keys, generations }) => (generations ? [keys, generations] : [keys]));
      const available = Promise.all(sources.map((source) => source.ready()));
      if (limitMs === undefined) return void (await available);
      // The timers of a gate keep no process alive; a caller that waits for one of them does.
      const keepAlive = setInterval(() => {}, MAX_DELAY_MS);
      try {
        await withTimeLimit(available, limitMs, settings.schedule, () => notReady(limitMs, status()));
      } finally {
        clearInterval(keepAlive);
      }
    },
    status,
    async close() {
      for (const { keys } of contexts) keys.close();
      opaque?.reader.close();
      for (const { generations } of contexts) await generations?.close();
    },
  };
}

/** Checks the claims, then the generation: only a token that passed every other check may raise a floor. Then reads the scopes. */
function accept(cached: CachedToken): Auth {
  const { context, reader } = cached;
  const verified = reader.verifyClaims(cached.claims);
  const { issuer, clientId, subject, tokenId, expiresAtMs, claims } = verified;
  const generation = context.generations?.verify(clientId, claims);
  const scopes = Object.freeze(reader.readScopes(claims));
  const auth = Object.freeze({ issuer, clientId, subject, tokenId, scopes, generation, expiresAtMs, claims });
  cached.accepted = { verified, auth };
  return auth;
}

/** Whether the times of a token still allow it (RFC 7519 sections 4.1.4 and 4.1.5). */
function isCurrent({ acceptedFromMs, acceptedUntilMs }: VerifiedToken, nowMs: number): boolean {
  return acceptedFromMs <= nowMs && nowMs < acceptedUntilMs;
}

function isReady({ keys, generations }: IssuerStatus): boolean {
  const haveKeys = keys.state === 'fresh' || keys.state === 'stale';
  return haveKeys && (generations === undefined || generations.source === 'none' || generations.source === 'fresh');
}

/** Names what a gate has not got yet, and why. */
function notReady(limitMs: number, { issuers }: GateStatus): Error {
  const missing = issuers.flatMap(({ issuer, keys, generations }) => [
    ...(keys.state === 'starting' ? [`the keys of ${issuer}${because(keys)}`] : []),
    ...(generations?.source === 'starting' ? [`the generations of ${issuer}${because(generations)}`] : []),
  ]);
  return new Error(`the gate is not ready after ${limitMs} ms: it has not read ${missing.join(' and ')}`);
}

function because({ lastError }: { readonly lastError?: string }): string {
  return lastError === undefined ? '' : ` (${lastError})`;
}

/** Values by token, a bounded number of them; the whole token is compared. */
export interface TokenCache<Value> {
  get(token: string): Value | undefined;
  /** Keeps the value of a token that is set for the second time; the first time leaves a trace only. */
  set(token: UnverifiedToken, value: Value): void;
  delete(token: string): void;
}

/** Traces of first uses: a power of two, 256 KB. */
const TRACES = 65_536;
/** Characters at the end of a token, all of its signature, by which it is found: 192 bits. */
const ENDING = 32;

interface Entry<Value> {
  readonly token: string;
  readonly value: Value;
}

/**
 * Makes a least-recently-used cache. Caching a token that is used once would evict one that is used again, so a caller
 * with a new token for each request evicts no other caller's.
 *
 * @param max - entries, at least 1
 */
export function tokenCache<Value extends object>(max: number): TokenCache<Value> {
  // Keyed by their endings: hashing a whole token takes longer than comparing it.
  const entries = new LRUCache<string, Entry<Value>>({ max });
  // A lost trace costs one more verification, a colliding one caches one use too early: neither returns a wrong value.
  const traces = new Uint32Array(TRACES);

  /** The signature has been verified: a caller cannot choose its first bytes. */
  function isSecondUse({ signature }: UnverifiedToken): boolean {
    const slot = signature.readUInt32BE(0) % TRACES;
    const trace = signature.readUInt32BE(4);
    if (traces[slot] === trace) return true;
    traces[slot] = trace;
    return false;
  }

  return {
    get(token) {
      const entry = entries.get(token.slice(-ENDING), NO_OPTIONS);
      return entry?.token === token ? entry.value : undefined;
    },
    set(token, value) {
      if (isSecondUse(token)) entries.set(token.raw.slice(-ENDING), { token: token.raw, value }, NO_OPTIONS);
    },
    delete: (token) => void entries.delete(token.slice(-ENDING)),
  };
}
