import { parseUrl } from '../core/urls';
import { PRESET_NAMES } from '../token/presets';
import { SCOPES_OPTION } from '../token/scopes';
import type { ScopeOptions } from '../token/scopes';
import { parseJson, parseJsonObject } from '../token/strict-json';

/** A number of requests per window. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

/** Reads the text of a variable. */
interface VariableType<Value> {
  /** As the object of a sentence: `a port from 0 to 65535`. */
  readonly expected: string;
  /** A valid text, shown with a problem. */
  readonly example: string;
  /** The value; `undefined` if the text is not of this type. */
  parse(text: string): Value | undefined;
  /** The texts that are accepted, where only these are. */
  readonly choices?: readonly string[];
  /** Makes a refused text safe to show; default: as it is. */
  show?(text: string): string;
}

const WINDOWS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const SWITCHES = new Map([
  ...['on', 'true', '1'].map((text) => [text, true] as const),
  ...['off', 'false', '0'].map((text) => [text, false] as const),
]);

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
const scopeClaims = checked<NonNullable<ScopeOptions['from']>>(
  'claims between commas or blanks, such as permissions or realm_access.roles; if a name contains dots itself, JSON: ["scope",["https://example.com/roles"]]',
  'scope,realm_access.roles',
  (given) => {
    const from = given.startsWith('[') ? parseJson(Buffer.from(given)) : given.split(/[\s,]+/).filter(Boolean);
    SCOPES_OPTION.read({ from }, AT);
    return from as string[];
  },
);
const scopeMap = checked<Readonly<Record<string, string | readonly string[]>>>(
  'a JSON object with the scope, or an array of the scopes, that each name grants',
  `'{"till":["orders:read","orders:write"]}'`,
  (given) => {
    // A name must not occur twice.
    const map = parseJsonObject(Buffer.from(given)) as Record<string, string | readonly string[]>;
    SCOPES_OPTION.read({ map }, AT);
    return map;
  },
);
const DAY_MS = 86_400_000;
const YEAR_SECONDS = 366 * 86_400;
const HOST = text(/^[A-Za-z0-9:]([A-Za-z0-9._:-]*[A-Za-z0-9:])?$/, 'a host name or an IP address', '127.0.0.1');
const CLAIM = text(/^[\x21-\x7e]{1,128}$/, 'the name of a claim', 'generation');
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
    text(/^\S+$/, 'an audience without white space', 'https://api.example.com'),
  ),
  jwksUri: derived(
    'TILLGATE_JWKS_URI',
    'URL of the key set',
    'discovered',
    url({ query: true, example: 'https://login.example.com/.well-known/openid-configuration/jwks' }),
  ),
  preset: given('TILLGATE_PRESET', "shape of the issuer's tokens", 'rfc9068', oneOf(PRESET_NAMES, 'identityserver')),
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
  maxStalenessMs: given(
    'TILLGATE_MAX_STALENESS_MS',
    'age of the last complete read of the source past which TILLGATE_ON_STALE applies',
    '60000',
    wholeNumber('whole number of ms', 1, DAY_MS, '60000'),
  ),
  maxSilenceMs: given(
    'TILLGATE_MAX_SILENCE_MS',
    'time without a sign of the publisher in the source past which TILLGATE_ON_STALE applies',
    '900000',
    wholeNumber('whole number of ms', 1, DAY_MS, '900000'),
  ),
  onStale: given(
    'TILLGATE_ON_STALE',
    'past either: respond with 503 (reject), or continue with the known floors (accept)',
    'reject',
    oneOf(['reject', 'accept'], 'reject'),
  ),
  keysMaxAgeMs: given(
    'TILLGATE_KEYS_MAX_AGE_MS',
    'age at which a key set is refreshed at the latest',
    '600000',
    wholeNumber('whole number of ms', 1_000, DAY_MS, '600000'),
  ),
  keysStaleMs: given(
    'TILLGATE_KEYS_STALE_MS',
    'how much longer the last good key set serves while the issuer is down; 0: not at all',
    '3600000',
    wholeNumber('whole number of ms', 0, 7 * DAY_MS, '3600000'),
  ),
  clockToleranceSeconds: given(
    'TILLGATE_CLOCK_TOLERANCE_SECONDS',
    'clock difference accepted for exp, nbf and iat',
    '10',
    wholeNumber('whole number of seconds', 0, 300, '10'),
  ),
  maxTokenAgeSeconds: given(
    'TILLGATE_MAX_TOKEN_AGE_SECONDS',
    'longest exp - iat that is accepted',
    '86400',
    wholeNumber('whole number of seconds', 1, YEAR_SECONDS, '86400'),
  ),
  allowHttp: given(
    'TILLGATE_ALLOW_HTTP',
    'lets an issuer, key set, source or introspection endpoint be http: on another host than loopback',
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
    'claims whose names count as scopes, nested ones as paths, all together: scope,realm_access.roles',
    'by preset',
    scopeClaims,
  ),
  scopeMap: derived(
    'TILLGATE_SCOPE_MAP',
    'JSON object with the scopes that each name grants; a name that is not in it grants nothing',
    'each name is a scope',
    scopeMap,
  ),
  introspectionClientId: derived(
    'TILLGATE_INTROSPECTION_CLIENT_ID',
    'accepts opaque tokens: client id with which the API asks the authorization server about them (RFC 7662)',
    'opaque tokens are refused',
    text(/^\P{Cc}+$/u, 'a client id without control characters', 'orders-api'),
  ),
  introspectionClientSecret: derived(
    'TILLGATE_INTROSPECTION_CLIENT_SECRET',
    'the client secret that belongs to it; never shown',
    'none',
    secret(/^\P{Cc}+$/u, 'a client secret without line breaks or other control characters', '"$(cat secret-file)"'),
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
    text(/^[^\0]+$/, 'a directory', '.tillgate'),
  ),
  adminPort: derived(
    'TILLGATE_ADMIN_PORT',
    '/metrics (Prometheus), /livez and /readyz on a port of their own',
    'off',
    orOff(port('9090')),
  ),
  adminToken: derived(
    'TILLGATE_ADMIN_TOKEN',
    'bearer token that /clients and /generations of the token server ask for; sent to the origin of TILLGATE_AUTH_URL only',
    'none',
    secret(
      /^[A-Za-z0-9._~+/-]{16,}=*$/,
      'at least 16 of the characters A-Z a-z 0-9 . _ ~ + / -',
      '$(openssl rand -hex 32)',
    ),
  ),
  rateLimit: given('TILLGATE_RATE_LIMIT', 'requests per client of an issuer on the API', '6000/m', rateLimit('6000/m')),
  tokenRateLimit: given(
    'TILLGATE_TOKEN_RATE_LIMIT',
    'requests per client id and IP address on the token endpoint',
    '60/m',
    rateLimit('60/m'),
  ),
  logLevel: given(
    'TILLGATE_LOG_LEVEL',
    'least severe level that is logged',
    'info',
    oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
  ),
};

export const VARIABLES: readonly Variable[] = Object.values(TABLE);

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

/** Text that matches `pattern`. */
function text(pattern: RegExp, expected: string, example: string): VariableType<string> {
  return { expected, example, parse: (given) => (pattern.test(given) ? given : undefined) };
}

/** Text that is never shown in a problem. */
function secret(pattern: RegExp, expected: string, example: string): VariableType<string> {
  return { ...text(pattern, expected, example), show: (given) => `${given.length} characters (not shown)` };
}

/** A whole number within inclusive bounds; digits only. `unit` is for the message. */
function wholeNumber(unit: string, min: number, max: number, example: string): VariableType<number> {
  return {
    expected: `a ${unit} from ${min} to ${max}`,
    example,
    parse(given) {
      const value = /^\d{1,15}$/.test(given) ? Number(given) : NaN;
      return value >= min && value <= max ? value : undefined;
    },
  };
}

/** A TCP port; 0 takes any free one. */
function port(example: string): VariableType<number> {
  return wholeNumber('port number', 0, 65_535, example);
}

/** One of several words. */
function oneOf<const Choice extends string>(choices: readonly Choice[], example: Choice): VariableType<Choice> {
  return {
    expected: `one of ${choices.join(', ')}`,
    example,
    choices,
    parse: (given) => choices.find((choice) => choice === given),
  };
}

/** `on` or `off`. */
function onOff(example: 'on' | 'off'): VariableType<boolean> {
  return { expected: 'on or off', example, parse: (given) => SWITCHES.get(given.toLowerCase()) };
}

/** `6000/m`: a number of requests per second, minute or hour; `off` is `false`. */
function rateLimit(example: string): VariableType<RateLimit | false> {
  return {
    expected: 'a number of requests per s, m or h, or off',
    example,
    parse(given) {
      if (given === 'off') return false;
      const [, limit, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(given) ?? [];
      const windowMs = WINDOWS[unit ?? ''];
      return windowMs === undefined ? undefined : Object.freeze({ limit: Number(limit), windowMs });
    },
  };
}

/** An absolute URL, kept byte for byte: issuers and audiences are compared without normalisation (RFC 8414 section 3.3). */
function url({
  schemes = ['http', 'https'],
  query = false,
  credentials = false,
  example,
}: {
  readonly schemes?: readonly string[];
  readonly query?: boolean;
  readonly credentials?: boolean;
  readonly example: string;
}): VariableType<string> {
  const without = [...(credentials ? [] : ['credentials']), ...(query ? [] : ['query']), 'fragment'].join(' or ');
  return {
    expected: `an absolute ${schemes.map((scheme) => `${scheme}://`).join(', ')} URL without ${without}`,
    example,
    parse(given) {
      // `new URL()` corrects blanks, backslashes and missing slashes: such URLs are refused.
      const scheme = /^([a-z]+):\/\/[^\s\\]+$/.exec(given)?.[1];
      if (scheme === undefined || !schemes.includes(scheme) || !parseUrl(given)) return undefined;
      if (given.includes('#') || (given.includes('?') && !query)) return undefined;
      return given.includes('@') && !credentials ? undefined : given;
    },
    show: withoutSecrets,
  };
}

/** What `read` returns, which throws for text of another type. */
function checked<Value extends object>(
  expected: string,
  example: string,
  read: (text: string) => Value,
): VariableType<Value> {
  return {
    expected,
    example,
    parse(given) {
      try {
        return Object.freeze(read(given));
      } catch {
        return undefined;
      }
    },
  };
}

/** A type, or `off` for `false`. */
function orOff<Value>(type: VariableType<Value>): VariableType<Value | false> {
  return {
    ...type,
    expected: `${type.expected}, or off`,
    parse: (given) => (given === 'off' ? false : type.parse(given)),
  };
}

/** A URL without the parts that can hold secrets: credentials, query and fragment. */
function withoutSecrets(given: string): string {
  const shown = given.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@').replace(/[?#].*$/su, '?...');
  return JSON.stringify(shown);
}
