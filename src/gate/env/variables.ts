import { NUMBER_OPTIONS } from '../core/number-options';
import { PRESET_NAMES } from '../token/presets';
import { SCOPES_OPTION } from '../token/scopes';
import type { ScopeOptions } from '../token/scopes';
import { parseJson, parseJsonObject } from '../token/strict-json';
import {
  checked,
  onOff,
  oneWord,
  origins,
  orOff,
  port,
  rateLimit,
  secretText,
  plainText,
  trustedProxies,
  url,
  wholeNumber,
} from './variable-types';
import type { VariableType } from './variable-types';

/** One environment variable. */
export interface Variable<Value = unknown> {
  readonly name: `TILLGATE_${string}`;
  readonly meaning: string;
  /** The default: text that is parsed like a given one, or a description (the value is then `undefined`). */
  readonly fallback: { readonly text: string } | { readonly words: string };
  readonly type: VariableType<Value>;
}

/** The option that two variables set. */
const AT = { factory: 'authenticate', name: 'scopes' };
const SCOPE_CLAIMS = checked<NonNullable<ScopeOptions['from']>>(
  'claims between commas or blanks, such as permissions or realm_access.roles; if a name contains dots itself, JSON: ["scope",["https://example.com/roles"]]',
  'scope,realm_access.roles',
  (given) => {
    const from = given.startsWith('[') ? parseJson(Buffer.from(given)) : given.split(/[\s,]+/).filter(Boolean);
    SCOPES_OPTION.read({ from }, AT);
    return from as string[];
  },
);
const SCOPE_MAP = checked<Readonly<Record<string, string | readonly string[]>>>(
  'a JSON object with the scope, or an array of the scopes, that each name grants',
  `'{"till":["orders:read","orders:write"]}'`,
  (given) => {
    // A name must not occur twice.
    const map = parseJsonObject(Buffer.from(given)) as Record<string, string | readonly string[]>;
    SCOPES_OPTION.read({ map }, AT);
    return map;
  },
);
const HOST = plainText(/^[A-Za-z0-9:]([A-Za-z0-9._:-]*[A-Za-z0-9:])?$/, 'a host name or an IP address', '127.0.0.1');
const CLAIM = plainText(/^[\x21-\x7e]{1,128}$/, 'the name of a claim', 'generation');
const SOURCE = url({
  schemes: ['http', 'https', 'redis', 'rediss', 'postgres', 'postgresql'],
  query: true,
  credentials: true,
  example: 'https://login.example.com/generations',
});

/** The variables that are options of `authenticate()`, by their names there. */
export const OF_GATE = {
  audience: derived(
    'TILLGATE_AUDIENCE',
    'the aud that access tokens must carry',
    'TILLGATE_BASE_URL',
    plainText(/^\S+$/, 'an audience without white space', 'https://api.example.com'),
  ),
  jwksUri: derived(
    'TILLGATE_JWKS_URI',
    'URL of the key set',
    'discovered',
    url({ query: true, example: 'https://login.example.com/.well-known/openid-configuration/jwks' }),
  ),
  preset: given('TILLGATE_PRESET', "shape of the issuer's tokens", 'rfc9068', oneWord(PRESET_NAMES, 'identityserver')),
  generationClaim: derived(
    'TILLGATE_GENERATION_CLAIM',
    'claim that holds the generation; iat compares the issue time; off checks none',
    'by preset',
    orOff(CLAIM),
  ),
  generationSource: derived(
    'TILLGATE_GENERATIONS',
    'where floors come from; off: learned from tokens only',
    'embedded in dev, else off',
    orOff(SOURCE),
  ),
  maxStalenessMs: limitedBy('TILLGATE_MAX_STALENESS_MS', 'maxStalenessMs'),
  maxSilenceMs: limitedBy('TILLGATE_MAX_SILENCE_MS', 'maxSilenceMs'),
  onStale: given(
    'TILLGATE_ON_STALE',
    'option `onStale`: `reject` or `accept`',
    'reject',
    oneWord(['reject', 'accept'], 'reject'),
  ),
  keysMaxAgeMs: limitedBy('TILLGATE_KEYS_MAX_AGE_MS', 'keysMaxAgeMs'),
  keysStaleMs: limitedBy('TILLGATE_KEYS_STALE_MS', 'keysStaleMs'),
  clockToleranceSeconds: limitedBy('TILLGATE_CLOCK_TOLERANCE_SECONDS', 'clockToleranceSeconds'),
  maxTokenAgeSeconds: limitedBy('TILLGATE_MAX_TOKEN_AGE_SECONDS', 'maxTokenAgeSeconds'),
  allowHttp: given(
    'TILLGATE_ALLOW_HTTP',
    'lets an issuer, key set, source, introspection or token endpoint be http: on another host than loopback',
    'off',
    onOff('on'),
  ),
};

/** Every variable, by its setting, in the order in which they are documented. */
export const TABLE = {
  host: given('TILLGATE_HOST', 'where the API listens: host name or IP address', '127.0.0.1', HOST),
  port: given('TILLGATE_PORT', 'where the API listens: port; 0 takes any free one', '3000', port('3000')),
  baseUrl: derived(
    'TILLGATE_BASE_URL',
    '{base_url}: public URL of the API, also its RFC 9728 resource',
    'http://HOST:PORT',
    url({ example: 'https://api.example.com' }),
  ),
  authUrl: derived(
    'TILLGATE_AUTH_URL',
    '{auth_url}: the authorization server',
    'embedded in dev',
    url({ example: 'https://login.example.com' }),
  ),
  issuer: derived(
    'TILLGATE_ISSUER',
    "exactly the token's iss, to the byte",
    'TILLGATE_AUTH_URL',
    url({ example: 'https://login.example.com' }),
  ),
  ...OF_GATE,
  scopeClaims: derived(
    'TILLGATE_SCOPE_CLAIMS',
    'option `scopes.from`: scope,realm_access.roles',
    'by preset',
    SCOPE_CLAIMS,
  ),
  scopeMap: derived('TILLGATE_SCOPE_MAP', 'option `scopes.map`, as JSON', 'each name is a scope', SCOPE_MAP),
  introspectionClientId: derived(
    'TILLGATE_INTROSPECTION_CLIENT_ID',
    'accepts opaque tokens: client id with which the API asks the authorization server about them (RFC 7662)',
    'opaque tokens are refused',
    plainText(/^\P{Cc}+$/u, 'a client id without control characters', 'orders-api'),
  ),
  introspectionClientSecret: derived(
    'TILLGATE_INTROSPECTION_CLIENT_SECRET',
    'the client secret that belongs to it; never shown',
    'none',
    secretText(/^\P{Cc}+$/u, 'a client secret without line breaks or other control characters', '"$(cat secret-file)"'),
  ),
  introspectionUrl: derived(
    'TILLGATE_INTROSPECTION_URL',
    'URL of the introspection endpoint',
    'discovered',
    url({ query: true, example: 'https://login.example.com/connect/introspect' }),
  ),
  authPort: given('TILLGATE_AUTH_PORT', 'embedded token server: port', '4000', port('4000')),
  dataDir: given(
    'TILLGATE_DATA_DIR',
    'embedded token server: where clients and keys are kept',
    '.tillgate',
    plainText(/^[^\0]+$/, 'a directory', '.tillgate'),
  ),
  adminToken: derived(
    'TILLGATE_ADMIN_TOKEN',
    'bearer token that /clients and /generations of the token server ask for; sent to the origin of TILLGATE_AUTH_URL only',
    'none',
    secretText(
      /^[A-Za-z0-9._~+/-]{16,}=*$/,
      'at least 16 of the characters A-Z a-z 0-9 . _ ~ + / -',
      '$(openssl rand -hex 32)',
    ),
  ),
  corsOrigins: derived(
    'TILLGATE_CORS_ORIGINS',
    'origins whose pages may call the API (CORS), between commas or blanks',
    'none',
    origins('https://shop.example.com,https://app.example.com'),
  ),
  rateLimit: given('TILLGATE_RATE_LIMIT', 'requests per client of an issuer on the API', '6000/m', rateLimit('6000/m')),
  tokenRateLimit: given(
    'TILLGATE_TOKEN_RATE_LIMIT',
    'requests per client id and IP address on the token endpoint',
    '60/m',
    rateLimit('60/m'),
  ),
  trustProxy: given(
    'TILLGATE_TRUST_PROXY',
    "whose X-Forwarded-* headers are believed, as Express's `trust proxy`: the number of proxies, or their IP addresses and subnets",
    'off',
    orOff(trustedProxies('10.0.0.0/8')),
  ),
  logLevel: given(
    'TILLGATE_LOG_LEVEL',
    'least severe level that is logged',
    'info',
    oneWord(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
  ),
};

export const VARIABLES: readonly Variable[] = Object.values(TABLE);

/** The variable of an option that is a number. */
function limitedBy(name: Variable['name'], limit: keyof typeof NUMBER_OPTIONS): Variable<number> {
  const { unit, min, max, fallback } = NUMBER_OPTIONS[limit];
  const text = String(fallback);
  return given(name, `option \`${limit}\``, text, wholeNumber(`whole number of ${unit}`, min, max, text));
}

function given<Value>(
  name: Variable['name'],
  meaning: string,
  text: string,
  type: VariableType<Value>,
): Variable<Value> {
  return { name, meaning, fallback: { text }, type };
}

function derived<Value>(
  name: Variable['name'],
  meaning: string,
  words: string,
  type: VariableType<Value>,
): Variable<Value | undefined> {
  return { name, meaning, fallback: { words }, type };
}
