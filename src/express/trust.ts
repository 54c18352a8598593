import { generationsFromUrl } from '../generation/from-url';
import type { GenerationSource } from '../generation/source';
import { trackGenerations } from '../generation/tracker';
import type { GenerationStatus, GenerationTracker } from '../generation/tracker';
import { keyFetcher } from '../token/keys/fetch-keys';
import type { KeySource, KeyStatus } from '../token/keys/key-source';
import { remoteKeys } from '../token/keys/remote-keys';
import { staticKeys } from '../token/keys/static-keys';
import { tokenVerifier } from '../token/verify';
import type { TokenVerifier } from '../token/verify';
import type { IssuerSettings } from './read-issuer-options';
import type { Surroundings } from './read-options';

/** All that is needed to decide about the tokens of one issuer. */
export interface Trust {
  readonly issuer: string;
  readonly verifier: TokenVerifier;
  /** Absent where the generation check is switched off. */
  readonly tracker: GenerationTracker | undefined;
  ready(): Promise<void>;
  status(): IssuerStatus;
  close(): Promise<void>;
}

/** State of one issuer, for operators. */
export interface IssuerStatus {
  readonly issuer: string;
  readonly keys: KeyStatus;
  /** Absent where the generation check is switched off. */
  readonly generations?: GenerationStatus;
}

const FETCH_TIMEOUT_MS = 5_000;
const MAX_DOCUMENT_BYTES = 1_048_576;

/** Opens what one issuer needs: its keys and its generations. Construction never waits and never fails on an outage. */
export function trust(settings: IssuerSettings, surroundings: Surroundings): Trust {
  const { issuer } = settings;
  const keys = openKeys(settings, surroundings);
  const tracker = openTracker(settings, surroundings);
  const verifier = tokenVerifier({
    rules: settings,
    algorithms: settings.algorithms,
    keys,
    clock: surroundings.clock,
  });
  return {
    issuer,
    verifier,
    tracker,
    async ready() {
      await Promise.all([keys.ready(), tracker?.ready()]);
    },
    status: () => ({ issuer, keys: keys.status(), ...(tracker && { generations: tracker.status() }) }),
    async close() {
      keys.close();
      await tracker?.close();
    },
  };
}

/** What is needed to have the keys of an issuer. */
export type KeySettings = Pick<
  IssuerSettings,
  'issuer' | 'authUrl' | 'jwksUri' | 'keys' | 'checkUrl' | 'keysMaxAgeMs' | 'keysStaleMs'
>;

/** Opens the keys of an issuer: the given ones, or those that it publishes. */
export function openKeys(settings: KeySettings, surroundings: Surroundings): KeySource {
  if (settings.keys) return staticKeys(settings.keys);
  const fetchKeys = keyFetcher({
    ...surroundings,
    issuer: settings.issuer,
    authUrl: settings.authUrl,
    jwksUri: settings.jwksUri,
    checkUrl: settings.checkUrl,
    maxBytes: MAX_DOCUMENT_BYTES,
  });
  const { issuer, keysMaxAgeMs: maxAgeMs, keysStaleMs: staleMs } = settings;
  return remoteKeys({ ...surroundings, issuer, fetchKeys, timeoutMs: FETCH_TIMEOUT_MS, maxAgeMs, staleMs });
}

function openTracker(settings: IssuerSettings, surroundings: Surroundings): GenerationTracker | undefined {
  const { generationClaim, preset, clockToleranceMs, maxTokenAgeMs } = settings;
  if (generationClaim === undefined) return undefined;
  const source = openSource(settings.generationSource, surroundings);
  return trackGenerations({
    ...surroundings,
    issuer: settings.issuer,
    rule: { claim: generationClaim, decimalString: preset.generationAsString, toleranceMs: clockToleranceMs },
    // An issue time proves no change of the credential: there floors come from a source only.
    learn: generationClaim !== 'iat',
    source,
    ownsSource: typeof settings.generationSource === 'string',
    maxTokenAgeMs,
    skewMs: clockToleranceMs,
    maxStalenessMs: settings.maxStalenessMs,
    onStale: settings.onStale,
    pollMs: settings.pollMs,
  });
}

function openSource(
  source: GenerationSource | string | undefined,
  surroundings: Surroundings,
): GenerationSource | undefined {
  return typeof source === 'string' ? generationsFromUrl(source, surroundings) : source;
}
