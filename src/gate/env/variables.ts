import { option, type OptionTable, type TextForm } from '../core/options';
import type { OpaqueOptions } from '../token/opaque-options';
import type { ScopeOptions } from '../token/scopes';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../verifier/read-options';
import type { GateSetting, Settings } from './settings';
import * as form from './text-forms';

/** One environment variable. */
export interface Variable extends TextForm {
  readonly name: `TILLGATE_${string}`;
  /** The setting that it sets: `opaque.url`. */
  readonly sets: string;
  /** Whether it is needed with any other variable of the same setting. */
  readonly isRequired: boolean;
  /** For the docs, if it is not that of an option. */
  readonly meaning?: string;
  /** The default: text that is parsed like a given one, or a description (the value is then `undefined`). */
  readonly fallback: { readonly text: string } | { readonly words: string };
  /** A valid text, shown with a problem. */
  readonly example: string;
}

/** What a row says: where a variable sets an option of `authenticate()`, only how it differs from the option. */
type Row = Pick<Variable, 'name'> & Partial<Omit<Variable, 'sets' | 'isRequired'>>;

/** Options of `authenticate()` that one variable sets, by their paths. */
type OptionPath =
  | Exclude<GateSetting, 'opaque' | 'scopes'>
  | `opaque.${Exclude<keyof OpaqueOptions, 'cacheMs'>}`
  | `scopes.${keyof ScopeOptions}`;

/** Settings of the app and of the token server. */
type OwnSetting = Exclude<keyof Settings, GateSetting | 'production'>;

const LOGIN = 'https://login.example.com';
const JWKS_URI = `${LOGIN}/.well-known/openid-configuration/jwks`;
const SOURCE_SCHEMES = ['http', 'https', 'redis', 'rediss', 'postgres', 'postgresql'];

/** A row for each variable, by the setting that it sets, in the order in which they are documented. */
const TABLE = {
  host: withDefault('TILLGATE_HOST', '127.0.0.1', {
    ...form.matching(/^[A-Za-z0-9:]([A-Za-z0-9._:-]*[A-Za-z0-9:])?$/, 'a host name or an IP address'),
    meaning: 'where the API listens: host name or IP address',
  }),
  port: withDefault('TILLGATE_PORT', '3000', {
    ...form.PORT,
    meaning: 'where the API listens: port; 0 takes any free one',
  }),
  baseUrl: optional('TILLGATE_BASE_URL', 'http://HOST:PORT', 'https://api.example.com', {
    ...form.url(),
    meaning: '{base_url}: public URL of the API, also its RFC 9728 resource',
  }),
  issuer: optional('TILLGATE_ISSUER', 'TILLGATE_AUTH_URL', LOGIN, form.url()),
  audience: optional('TILLGATE_AUDIENCE', 'TILLGATE_BASE_URL', 'https://api.example.com', {
    ...form.AUDIENCES,
    meaning: 'accepted `aud`: one, or several as JSON: `["https://api.example.com","https://shop.example.com"]`',
  }),
  authUrl: optional('TILLGATE_AUTH_URL', 'embedded in dev', LOGIN, {
    ...form.url(),
    meaning: '{auth_url}: the authorization server',
  }),
  jwksUri: optional('TILLGATE_JWKS_URI', 'discovered', JWKS_URI, form.url(['query'])),
  keys: optional('TILLGATE_KEYS', 'the key set of the issuer', 'none', {
    ...form.EMPTY_KEYS,
    meaning: '`none`: the issuer has no JWTs, only opaque tokens (option `keys: []`)',
  }),
  preset: optional('TILLGATE_PRESET', "by the issuer's URL, else rfc9068", 'identityserver'),
  'scopes.from': optional('TILLGATE_SCOPE_CLAIMS', 'by preset', 'scope,realm_access.roles'),
  'scopes.map': optional('TILLGATE_SCOPE_MAP', 'each name is a scope', `'{"till":["orders:read","orders:write"]}'`),
  generationClaim: optional('TILLGATE_GENERATION_CLAIM', 'by preset, else `iat`', 'generation', form.CLAIM),
  generationSource: optional('TILLGATE_GENERATIONS', 'embedded in dev, else off', `${LOGIN}/generations`, {
    ...form.orOff(form.url(['query', 'credentials'], SOURCE_SCHEMES)),
    meaning: 'where floors come from; off: learned from tokens only',
  }),
  maxStalenessMs: { name: 'TILLGATE_MAX_STALENESS_MS' },
  maxSilenceMs: { name: 'TILLGATE_MAX_SILENCE_MS' },
  onStale: { name: 'TILLGATE_ON_STALE' },
  'opaque.url': optional(
    'TILLGATE_INTROSPECTION_URL',
    'discovered',
    `${LOGIN}/connect/introspect`,
    form.url(['query']),
  ),
  'opaque.clientId': optional(
    'TILLGATE_INTROSPECTION_CLIENT_ID',
    'opaque tokens are refused',
    'orders-api',
    form.matching(/^\P{Cc}+$/u, 'a client id without control characters'),
  ),
  'opaque.clientSecret': optional(
    'TILLGATE_INTROSPECTION_CLIENT_SECRET',
    'none',
    '"$(cat secret-file)"',
    form.matching(/^\P{Cc}+$/u, 'a client secret without line breaks or other control characters'),
  ),
  keysMaxAgeMs: { name: 'TILLGATE_KEYS_MAX_AGE_MS' },
  keysStaleMs: { name: 'TILLGATE_KEYS_STALE_MS' },
  clockToleranceSeconds: { name: 'TILLGATE_CLOCK_TOLERANCE_SECONDS' },
  maxTokenAgeSeconds: { name: 'TILLGATE_MAX_TOKEN_AGE_SECONDS' },
  allowHttp: { name: 'TILLGATE_ALLOW_HTTP', example: 'on' },
  authPort: withDefault('TILLGATE_AUTH_PORT', '4000', { ...form.PORT, meaning: 'embedded token server: port' }),
  dataDir: withDefault('TILLGATE_DATA_DIR', '.tillgate', {
    ...form.matching(/^[^\0]+$/, 'a directory'),
    meaning: 'embedded token server: where clients and keys are kept',
  }),
  adminToken: optional('TILLGATE_ADMIN_TOKEN', 'none', '$(openssl rand -hex 32)', {
    ...option.secret(16).text,
    ...form.matching(/^[A-Za-z0-9._~+/-]{16,}=*$/, 'at least 16 of the characters A-Z a-z 0-9 . _ ~ + / -'),
    meaning:
      'bearer token that /clients and /generations of the token server ask for; sent to the origin of TILLGATE_AUTH_URL only',
  }),
  corsOrigins: optional('TILLGATE_CORS_ORIGINS', 'none', 'https://shop.example.com,https://app.example.com', {
    ...form.ORIGINS,
    meaning: 'origins whose pages may call the API (CORS), between commas or blanks',
  }),
  rateLimit: withDefault('TILLGATE_RATE_LIMIT', '6000/m', {
    ...form.RATE_LIMIT,
    meaning: 'requests per client of an issuer on the API',
  }),
  tokenRateLimit: withDefault('TILLGATE_TOKEN_RATE_LIMIT', '60/m', {
    ...form.RATE_LIMIT,
    meaning: 'requests per client id and IP address on the token endpoint',
  }),
  trustProxy: withDefault('TILLGATE_TRUST_PROXY', 'off', {
    ...form.PROXIES,
    example: '10.0.0.0/8',
    meaning:
      "whose X-Forwarded-* headers are believed, as Express's `trust proxy`: the number of proxies, or their IP addresses and subnets",
  }),
  logLevel: withDefault('TILLGATE_LOG_LEVEL', 'info', {
    ...form.LOG_LEVEL,
    meaning: 'least severe level that is logged',
  }),
} satisfies Readonly<Record<OptionPath, Row>> & {
  readonly [Name in OwnSetting]: Row & TextForm<Settings[Name] | false>;
};

/** A row with a default, which is parsed like a given text. */
function withDefault<Form>(name: Row['name'], text: string, form: Form) {
  return { name, fallback: { text }, example: text, ...form };
}

/** A row without a default: `words` say what holds instead. */
function optional<Form>(name: Row['name'], words: string, example: string, form?: Form) {
  return { name, fallback: { words }, example, ...(form as Form) };
}

const OPTIONS: OptionTable = { ...ISSUER_OPTIONS, allowHttp: GATE_OPTIONS.allowHttp };

/** Every variable, complete with what its option says. */
export const VARIABLES = Object.entries<Row>(TABLE).map(([sets, row]): Variable => {
  const [name = '', member] = sets.split('.');
  const option = member === undefined ? OPTIONS[name] : OPTIONS[name]?.table?.[member];
  const text = option?.fallback === false ? 'off' : String(option?.fallback);
  // Of a row without an option `TABLE` demands a form.
  return {
    sets,
    fallback: { text },
    example: text,
    ...(option?.text as TextForm),
    ...row,
    isRequired: option?.isRequired === true,
  };
});

/** The settings that are options of `authenticate()`. */
export const GATE_SETTINGS = Object.keys(OPTIONS).filter((name) =>
  VARIABLES.some(({ sets }) => sets.split('.')[0] === name),
) as GateSetting[];
