import { parseUrl } from '../core/urls';

/** How one family shapes its client-credentials access tokens. */
export interface Preset {
  /** Accepted `typ`, lower case and without `application/`; `undefined` accepts a token without one. */
  readonly types: readonly (string | undefined)[];
  /** Claims that hold the client id, the first one present counts. */
  readonly clientIdClaims: readonly string[];
  /** Whether a token without a client id is accepted: then the caller is `sub:<sub>`. */
  readonly clientCanBeSubject?: boolean;
  /** Claims that hold the scopes, the first one present counts. */
  readonly scopeClaims: readonly string[];
  /** Claims that must be there beyond `iss`, `exp` and `iat`, which every token needs. */
  readonly requiredClaims: readonly string[];
  /**
   * Claims that must have exactly this value, or the other one in a token that is bound to a key by DPoP (`cnf.jkt`): what
   * tells an access token from an ID token where `typ` does not.
   */
  readonly fixedClaims: readonly (readonly [name: string, value: string, ofDpop?: string])[];
  /** Whether `audience: false` is allowed, because these issuers can leave `aud` out. */
  readonly audienceCanBeAbsent: boolean;
  /** Claim that holds the generation where it is stamped; a token without it is compared by `iat`. */
  readonly stampedClaim: string;
  /** Whether the generation may come as a decimal string. */
  readonly generationAsString: boolean;
  /** Claim that names the tenant, where tenants share a key set whose keys say which issuer may sign with them. */
  readonly tenantClaim: string | undefined;
}

const RFC9068: Preset = {
  types: ['at+jwt'],
  clientIdClaims: ['client_id'],
  scopeClaims: ['scope'],
  requiredClaims: ['aud', 'sub', 'client_id', 'jti'],
  fixedClaims: [],
  audienceCanBeAbsent: false,
  stampedClaim: 'generation',
  generationAsString: false,
  tenantClaim: undefined,
};

/** A family that signs plain JWTs: no claim beyond the common ones can be relied on. */
const PLAIN: Preset = { ...RFC9068, types: ['jwt'], requiredClaims: [] };

/** One row per family; vendors change, so a row is meant to be easy to correct. Sources: RFC 9068 section 2, vendors' documentation. */
export const PRESETS = {
  rfc9068: RFC9068,
  identityserver: {
    ...RFC9068,
    requiredClaims: ['client_id'],
    audienceCanBeAbsent: true,
    stampedClaim: 'client_generation',
    generationAsString: true,
  },
  keycloak: {
    ...PLAIN,
    types: ['jwt', 'at+jwt'],
    clientIdClaims: ['azp', 'client_id'],
    fixedClaims: [['typ', 'Bearer', 'DPoP']],
  },
  auth0: {
    ...PLAIN,
    types: ['jwt', 'at+jwt'],
    clientIdClaims: ['client_id', 'azp'],
    scopeClaims: ['scope', 'permissions'],
  },
  okta: { ...PLAIN, types: [undefined, 'jwt'], clientIdClaims: ['cid'], scopeClaims: ['scp'] },
  // A token of a user has the delegated scopes in `scp`, which bound what the app may do; one of an app has `roles` alone.
  entra: { ...PLAIN, clientIdClaims: ['azp', 'appid'], scopeClaims: ['scp', 'roles'], tenantClaim: 'tid' },
  cognito: { ...PLAIN, types: [undefined, 'jwt'], fixedClaims: [['token_use', 'access']], audienceCanBeAbsent: true },
  hydra: { ...PLAIN, scopeClaims: ['scp', 'scope'] },
  openiddict: { ...RFC9068, requiredClaims: ['aud', 'sub', 'client_id'] },
  ping: {
    ...RFC9068,
    types: ['at+jwt', 'jwt', undefined],
    requiredClaims: ['aud', 'client_id'],
  },
  // For signed JWTs of any other server: never chosen by a URL.
  jwt: {
    ...PLAIN,
    types: [undefined, 'jwt', 'at+jwt'],
    clientIdClaims: ['client_id', 'azp', 'cid', 'appid'],
    clientCanBeSubject: true,
    scopeClaims: ['scope', 'scp'],
  },
} as const satisfies Record<string, Preset>;

/** Name of an issuer preset. */
export type PresetName = keyof typeof PRESETS;

export const PRESET_NAMES = Object.keys(PRESETS) as readonly PresetName[];

/**
 * Where the URLs of a vendor's issuers differ from all others: in their host, which is the vendor's, or in their path. Of
 * the parsed URL: in a text `https://auth0.com.evil.example/` and `https://evil.example\\.auth0.com/` look alike.
 */
const ISSUER_URLS: readonly (readonly [PresetName, part: 'host' | 'pathname', pattern: RegExp])[] = [
  ['auth0', 'host', /^[^.].*\.auth0\.com$/],
  ['okta', 'host', /^[^.].*\.okta(?:preview|-emea|-gov)?\.com$/],
  ['entra', 'host', /^(?:login\.microsoftonline\.(?:com|us)|login\.partner\.microsoftonline\.cn|sts\.windows\.net)$/],
  ['entra', 'host', /^[^.]+\.ciamlogin\.com$/],
  ['cognito', 'host', /^cognito-idp\.[^.]+\.amazonaws\.com(?:\.cn)?$/],
  ['ping', 'host', /^auth\.pingone\.(?:com|eu|ca|asia|sg|com\.au)$/],
  ['hydra', 'host', /^[^.]+\.projects\.oryapis\.com$/],
  ['keycloak', 'pathname', /\/realms\/[^/]+$/],
];

/** The preset of the vendor whose issuers have such a URL. A host counts with TLS only, on the port of https. */
export function presetOfUrl(issuer: string): PresetName | undefined {
  const url = parseUrl(issuer);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined;
  return ISSUER_URLS.find(([, part, pattern]) => {
    return pattern.test(url[part]) && (part === 'pathname' || url.protocol === 'https:');
  })?.[0];
}

/** The preset of an issuer, and what has chosen it. No token and no fetched document ever does. */
export function presetOf(
  issuer = '',
  preset?: PresetName,
): { readonly name: PresetName; readonly chosenBy: 'option' | 'issuer' | 'default' } {
  if (preset !== undefined) return { name: preset, chosenBy: 'option' };
  const name = presetOfUrl(issuer);
  return name === undefined ? { name: 'rfc9068', chosenBy: 'default' } : { name, chosenBy: 'issuer' };
}
