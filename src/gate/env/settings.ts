import type { PresetName } from '../token/presets';
import type { OpaqueOptions } from '../token/opaque-options';
import type { ScopeOptions } from '../token/scopes';
import type { IssuerOptions } from '../verifier/options';

/** A number of requests per window. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

/** The checked values of the `TILLGATE_*` variables, with every default. Frozen. */
export interface Settings {
  /** `TILLGATE_HOST`: host name or IP address where the API listens. Default `127.0.0.1`. */
  readonly host: string;
  /** `TILLGATE_PORT`: port where the API listens; 0: any free one. Default 3000. */
  readonly port: number;
  /** `TILLGATE_BASE_URL`: public URL of the API. Default: `http://<host>:<port>`. */
  readonly baseUrl: string;
  /** `TILLGATE_ISSUER`: exactly the `iss` of the tokens. Default: `authUrl`; `undefined`: no variable names the issuer. */
  readonly issuer: string | undefined;
  /** `TILLGATE_AUDIENCE`: accepted `aud`, one or a list of several. Default: `baseUrl`. */
  readonly audience: string | readonly string[];
  /** `TILLGATE_AUTH_URL`: URL of the authorization server. Default: none, as for the embedded token server. */
  readonly authUrl: string | undefined;
  /** `TILLGATE_JWKS_URI`: URL of the key set. Default: discovered. */
  readonly jwksUri: string | undefined;
  /** `TILLGATE_KEYS`: an empty list for `none`, the issuer has no JWTs. Default: the key set of the issuer. */
  readonly keys: { readonly keys: readonly object[] } | readonly object[] | undefined;
  /** `TILLGATE_PRESET`: shape of the tokens. Default: by the issuer's URL, else `rfc9068`. */
  readonly preset: PresetName | undefined;
  /** `TILLGATE_SCOPE_CLAIMS` and `TILLGATE_SCOPE_MAP`; `undefined` if neither is set. */
  readonly scopes: ScopeOptions | undefined;
  /** `TILLGATE_GENERATION_CLAIM`: the claim of the generation, or its path; `false`: no check. Default: by preset, else `iat`. */
  readonly generationClaim: string | readonly string[] | false | undefined;
  /** `TILLGATE_GENERATIONS`: URL of the source. Default: none, generations are learned from tokens only. */
  readonly generationSource: string | undefined;
  /** `TILLGATE_MAX_STALENESS_MS`: longest time in ms since the source was read to its end. Default 60000. */
  readonly maxStalenessMs: number;
  /** `TILLGATE_MAX_SILENCE_MS`: longest time in ms since the publisher was heard from. Default 900000. */
  readonly maxSilenceMs: number;
  /** `TILLGATE_ON_STALE`: past one of the two, 503 or accepted. Default `reject`. */
  readonly onStale: 'reject' | 'accept';
  /** `TILLGATE_INTROSPECTION_*`, with the secret; `undefined`: opaque tokens are refused. */
  readonly opaque: OpaqueOptions | undefined;
  /** `TILLGATE_KEYS_MAX_AGE_MS`: age in ms at which the key set is refreshed. Default 600000. */
  readonly keysMaxAgeMs: number;
  /** `TILLGATE_KEYS_STALE_MS`: how much longer in ms it serves while the issuer is down. Default 3600000. */
  readonly keysStaleMs: number;
  /** `TILLGATE_CLOCK_TOLERANCE_SECONDS`: seconds by which clocks may differ. Default 10. */
  readonly clockToleranceSeconds: number;
  /** `TILLGATE_MAX_TOKEN_AGE_SECONDS`: longest accepted `exp - iat` in seconds. Default 86400. */
  readonly maxTokenAgeSeconds: number;
  /** `TILLGATE_ALLOW_HTTP`: whether URLs may be `http:` on another host than loopback. Default `false`. */
  readonly allowHttp: boolean;
  /** `TILLGATE_AUTH_PORT`: port of the embedded token server. Default 4000. */
  readonly authPort: number;
  /** `TILLGATE_DATA_DIR`: where the embedded token server keeps clients and keys. Default `.tillgate`. */
  readonly dataDir: string;
  /** `TILLGATE_ADMIN_TOKEN`: bearer token of `/clients` and `/generations` of the token server. Default: none. */
  readonly adminToken: string | undefined;
  /** `TILLGATE_CORS_ORIGINS`: origins whose pages may call the API. Default: none. */
  readonly corsOrigins: readonly string[] | undefined;
  /** `TILLGATE_RATE_LIMIT`: requests per client of an issuer on the API; `undefined`: no limit. Default `6000/m`. */
  readonly rateLimit: RateLimit | undefined;
  /** `TILLGATE_TOKEN_RATE_LIMIT`: requests per client id and IP address on the token endpoint. Default `60/m`. */
  readonly tokenRateLimit: RateLimit | undefined;
  /** `TILLGATE_TRUST_PROXY`: number of proxies whose headers are believed, or their addresses and subnets. Default `false`. */
  readonly trustProxy: number | readonly string[] | false;
  /** `TILLGATE_LOG_LEVEL`: least severe level that is logged. Default `info`. */
  readonly logLevel: string;
  /** Whether `NODE_ENV` is `production`. */
  readonly production: boolean;
}

/** The settings that are options of `authenticate()`. */
export type GateSetting = keyof Settings & (keyof IssuerOptions | 'allowHttp');
