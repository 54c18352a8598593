import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { AuthError } from '../../core/auth-error';
import type { Clock } from '../../core/clock';
import { escapeUnsafe, loggablePath } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { option, refuseOption } from '../../core/options';
import type { TableOf } from '../../core/options';
import { hasUserInfo, withoutSlash } from '../../core/urls';
import { headerOf } from '../bearer';
import type { TokenRequest } from '../bearer';
import { ALGORITHMS, readAlgorithms } from '../signature';
import type { Algorithm } from '../signature';
import { accessTokenHash, invalidProof, isUrlOf, verifyProof } from './dpop-proof';
import type { DpopProof } from './dpop-proof';
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
    const fits = typeof given === 'string' && /^https?:\/\/[^?#]+$/i.test(given) && URL.canParse(given);
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
  readonly #algorithms: ReadonlySet<Algorithm>;
  readonly #clock: Clock;
  readonly #clockToleranceMs: number;
  readonly #replays: ReplayStore;
  readonly #nonces: DpopNonces | undefined;

  constructor(settings: DpopSettings, clock: Clock, clockToleranceMs: number, logger: Logger) {
    const { nonce } = settings;
    this.#settings = settings;
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
   * @returns the nonce that the response should carry, where the one of the proof is aging (RFC 9449 section 8.2)
   */
  async verify(request: TokenRequest, token: string, bound: unknown): Promise<string | undefined> {
    const { baseUrl } = this.#settings;
    const proof = verifyProof(proofOf(request), this.#algorithms, bound);
    if (proof.method !== request.method) throw invalidProof('htm is not the method of the request');
    const target = request.originalUrl ?? request.url ?? '';
    if (!isUrlOf(proof.url, baseUrl, target)) throw invalidProof(`htu is not ${baseUrl}${loggable(target)}`);
    if (proof.tokenHash !== accessTokenHash(token)) throw invalidProof('ath is not the hash of the access token');
    const nowMs = this.#clock();
    if (nowMs >= proof.expiresAtMs + this.#clockToleranceMs) throw invalidProof('exp has passed');
    if (nowMs < proof.notBeforeMs - this.#clockToleranceMs) throw invalidProof('nbf is in the future');
    const untilMs = this.#acceptedUntilMs(proof, nowMs);
    await this.#remember(proof, untilMs);
    return this.#nonces?.isAging(untilMs) ? this.#nonces.make() : undefined;
  }

  /** The nonce for a response with `dpop_nonce_required`. */
  nonce(): string | undefined {
    return this.#nonces?.make();
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

  async #remember({ thumbprint, id }: DpopProof, untilMs: number): Promise<void> {
    // One clock may be ahead and another behind. The process that is ahead must not forget what the other still accepts.
    const clockDifferenceMs = Math.max(2 * this.#clockToleranceMs, MIN_CLOCK_DIFFERENCE_MS);
    const name = createHash('sha256').update(`${thumbprint}\n${id}`).digest().subarray(0, 16).toString('base64url');
    let isNew: boolean;
    try {
      isNew = await this.#replays.remember(name, untilMs + clockDifferenceMs, thumbprint);
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
