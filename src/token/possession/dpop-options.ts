import { ownMembers } from '../../core/objects';
import { readOptions } from '../../core/options';
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

/** Checked options. */
export interface DpopSettings {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly required: boolean;
  readonly algorithms: readonly Algorithm[];
  readonly proofMaxAgeMs: number;
  /** `undefined`: no nonce; `true`: with a secret of this process. */
  readonly nonce: true | { readonly secret: string } | undefined;
  readonly replayStore: ReplayStore | undefined;
}

const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];
const MIN_SECRET_LENGTH = 32;

/**
 * Checks the option `dpop` of a factory.
 *
 * @param resource - the option `resource`, whose origin is the default of `baseUrl`
 * @throws TypeError that does not quote the secret
 */
export function readDpop(factory: string, options: DpopOptions, resource: string | undefined): DpopSettings {
  const names = ['baseUrl', 'required', 'algorithms', 'proofMaxAgeSeconds', 'nonce', 'replayStore'] as const;
  const read = readOptions(factory, options, names, 'dpop');
  const given = ownMembers(options);
  const baseUrl = read.string('baseUrl') ?? (resource === undefined ? undefined : new URL(resource).origin);
  if (
    baseUrl === undefined ||
    !/^https?:\/\/[^?#]+$/i.test(baseUrl) ||
    !URL.canParse(baseUrl) ||
    hasUserInfo(baseUrl)
  ) {
    return read.refuse(
      'baseUrl',
      'the public http(s) URL of the root of the app, as clients have it (or set "resource")',
    );
  }
  const algorithms =
    readAlgorithms(given.algorithms ?? DEFAULT_ALGORITHMS) ??
    read.refuse('algorithms', `an array with some of ${ALGORITHMS.join(', ')}`);
  const { replayStore } = given;
  if (replayStore !== undefined && typeof (replayStore as ReplayStore | null)?.remember !== 'function') {
    read.refuse('replayStore', 'an object with the method remember');
  }
  return {
    baseUrl: withoutSlash(baseUrl),
    required: read.boolean('required', false),
    algorithms,
    proofMaxAgeMs: 1000 * read.number('proofMaxAgeSeconds', 60, { unit: 'seconds', min: 1, max: 600 }),
    nonce: readNonce(factory, given.nonce),
    replayStore,
  };
}

function readNonce(factory: string, nonce: DpopOptions['nonce']): DpopSettings['nonce'] {
  if (nonce === undefined || nonce === false) return undefined;
  if (nonce === true) return true;
  readOptions(factory, nonce, ['secret'], 'dpop.nonce');
  const { secret } = ownMembers(nonce);
  if (typeof secret === 'string' && secret.length >= MIN_SECRET_LENGTH) return { secret };
  throw new TypeError(
    `${factory}(): option "dpop.nonce.secret" must be a string of at least ${MIN_SECRET_LENGTH} characters`,
  );
}
