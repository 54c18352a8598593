import { boolean, nested, number, option, refuseOption, required, secret, withMethods } from '../../core/options';
import type { TableOf } from '../../core/options';
import { hasUserInfo, withoutSlash } from '../../core/urls';
import { ALGORITHMS, readAlgorithms } from '../algorithms';
import type { Algorithm } from '../algorithms';
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
const NONCE = nested({ secret: required(secret(32)) });

/** The option `dpop` of a factory; {@link withBaseUrl} completes it. */
export const DPOP_OPTION = nested({
  baseUrl: option(BASE_URL, (given) => {
    const fits = typeof given === 'string' && /^https?:\/\/[^?#]+$/i.test(given) && URL.canParse(given);
    return fits && !hasUserInfo(given) ? withoutSlash(given) : undefined;
  }),
  required: boolean(false),
  algorithms: option(`an array with some of ${ALGORITHMS.join(', ')}`, readAlgorithms, DEFAULT_ALGORITHMS),
  proofMaxAgeSeconds: number({ unit: 'seconds', min: 1, max: 600 }, 60),
  // `true`: with a secret of this process.
  nonce: option(NONCE.expected, (given, at) => (typeof given === 'boolean' ? given : NONCE.read(given, at)), false),
  replayStore: withMethods<ReplayStore>(['remember'], 'an object with the method remember'),
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
