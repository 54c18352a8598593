import type { Clock } from '../core/clock';
import type { JsonObject } from '../net/strict-json';
import { parseUrl } from '../core/urls';
import type * as Sources from '../generation/from-url';
import { Follower } from '../generation/follower';
import { keyFetcher } from '../token/keys/fetch-keys';
import { staticKeys, type KeySource } from '../token/keys/key-set';
import type * as KeyStores from '../token/keys/key-store';
import { RemoteKeys } from '../token/keys/remote-keys';
import { scopeReader } from '../token/scopes';
import type { SignatureVerifier } from '../token/signature';
import type { ClaimRules } from '../token/claims';
import type { checkHeader } from '../token/jws';
import type { GateDependencies, IssuerSettings } from './read-options';

/** How the claims of one kind of token are checked and read. */
export interface ClaimsPolicy {
  readonly rules: ClaimRules;
  /** Makes claims of an introspection response. Default: the claims are those of a JWT. */
  readonly claimsOf?: (response: JsonObject) => JsonObject;
  readonly readScopes: ReturnType<typeof scopeReader>;
}

/** Everything that decides about the tokens of one issuer. */
export interface IssuerContext {
  readonly issuer: string;
  readonly settings: IssuerSettings;
  readonly keys: KeySource;
  /** What the header of a JWT may say. */
  readonly accepted: Parameters<typeof checkHeader>[1];
  readonly signatures: SignatureVerifier;
  readonly clock: Clock;
  /** For signed tokens. */
  readonly policy: ClaimsPolicy;
  /** Absent where the generation check is switched off. */
  readonly generations: Follower | undefined;
  /** Stops following keys and generations. */
  readonly close: () => Promise<void>;
}

/* eslint-disable @typescript-eslint/no-require-imports -- loaded by gates with these options */
const keyStores = () => require('../token/keys/key-store') as typeof KeyStores;
const sources = () => require('../generation/from-url') as typeof Sources;

const FETCH_TIMEOUT_MS = 5_000;

/** Opens the keys and generations of one issuer. Never waits, and never fails because of an outage. */
export function openIssuer(
  settings: IssuerSettings,
  signatures: SignatureVerifier,
  dependencies: GateDependencies,
): IssuerContext {
  const { issuer, algorithms, preset, presetChoice, scopes } = settings;
  if (presetChoice.chosenBy === 'issuer') {
    const message = `preset ${presetChoice.name}, by the issuer's URL; name it to be sure`;
    dependencies.logger.info({ issuer }, message);
  }
  const doubt = doubtAbout(settings);
  if (doubt !== undefined) dependencies.logger.warn({ issuer }, doubt);
  const keys = openKeys(settings, dependencies);
  const generations = openGenerations(settings, dependencies);
  const { clock } = dependencies;
  const accepted = { algorithms: new Set(algorithms), types: new Set(preset.types) };
  const policy = { rules: settings, readScopes: scopeReader(preset.scopeClaims, scopes) };
  const close = async (): Promise<void> => {
    keys.close();
    await generations?.close();
  };
  return { issuer, settings, keys, accepted, signatures, clock, policy, generations, close };
}

/** What is probably wrong with the URL of an issuer, where no token can show it. */
function doubtAbout({ issuer }: IssuerSettings): string | undefined {
  const { hostname, pathname } = parseUrl(issuer) ?? {};
  if (hostname === undefined) return undefined;
  if (hostname.endsWith('.auth0.com') && pathname === '/' && !issuer.endsWith('/')) {
    return `the iss of Auth0 ends in a slash: the issuer is "${issuer}/"`;
  }
  if (/\.okta(?:preview)?\.com$/.test(hostname) && !pathname?.startsWith('/oauth2/')) {
    return "this is Okta's organization authorization server, whose tokens only Okta can verify: use a custom authorization server, such as /oauth2/default";
  }
  return undefined;
}

/** Opens the keys of an issuer: those that are given, which may be none where all its tokens can be opaque, or those it publishes. */
function openKeys(settings: IssuerSettings, dependencies: GateDependencies): KeySource {
  if (settings.keys) return staticKeys(settings.keys, settings.opaque !== undefined);
  const { fetch, clock, schedule, random, logger } = dependencies;
  const { issuer, keyStore, keysMaxAgeMs, keysStaleMs } = settings;
  const fetcher = keyFetcher(settings, { fetch, logger });
  const kept = keyStore && keyStores().keptKeys(keyStore, fetcher, settings, dependencies);
  const ages = { timeoutMs: FETCH_TIMEOUT_MS, keysMaxAgeMs, keysStaleMs };
  return new RemoteKeys({ issuer, fetchKeys: fetcher.fetch, kept, ...ages, clock, schedule, random, logger });
}

function openGenerations(settings: IssuerSettings, dependencies: GateDependencies): Follower | undefined {
  const { issuer, generationClaim: claim, generationPath: path, elseIat, generationSource, preset } = settings;
  const { onStale, maxTokenAgeMs, maxStalenessMs, maxSilenceMs, clockToleranceMs } = settings;
  const { fetch, clock, schedule, random, logger, pollMs, readTimeoutMs } = dependencies;
  if (claim === undefined) return undefined;
  if (claim === 'iat' && generationSource === undefined) {
    const message =
      "generationClaim is 'iat', and there is no generationSource to compare it with: tokens are accepted until they expire";
    logger.warn({ issuer }, message);
  }
  const ownsSource = typeof generationSource === 'string';
  // The URL was checked with the options.
  const source = ownsSource
    ? sources().generationsFromUrl(generationSource, { fetch, clock, schedule, allowHttp: true })
    : generationSource;
  return new Follower({
    issuer,
    source,
    ownsSource,
    onStale,
    maxTokenAgeMs,
    maxStalenessMs,
    maxSilenceMs,
    skewMs: clockToleranceMs,
    rule: { claim, path, elseIat, decimalString: preset.generationAsString, toleranceMs: clockToleranceMs },
    pollMs,
    readTimeoutMs,
    clock,
    schedule,
    random,
    logger,
  });
}
