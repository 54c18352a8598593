import { isIP } from 'node:net';
import { option, matching, url, type Option, type OptionTable, type Variable } from '../core/options';
import { parseUrl } from '../core/urls';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../verifier/read-options';

/** A number of requests per window. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

const PORT = { min: 0, max: 65_535, integer: true };
const PORT_EXPECTED = 'a port number from 0 to 65535';
const HOST = matching(/^[A-Za-z0-9:]([A-Za-z0-9._:-]*[A-Za-z0-9:])?$/, 'a host name or an IP address');
const RATE_LIMIT = fromText('a number of requests per s, m or h, or off', readRateLimit);
const ORIGINS = fromText(
  'origins such as https://shop.example.com, without a path, between commas or blanks',
  readOrigins,
);
const PROXIES = fromText(
  'a number of proxies from 1 to 100, or IP addresses and subnets between commas or blanks, or off',
  readProxies,
  false,
);
const LOG_LEVEL = option.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info');

/** The options of `authenticate()` that variables set. */
export const OF_GATE = {
  ...withVariables(ISSUER_OPTIONS),
  allowHttp: GATE_OPTIONS.allowHttp,
};

/** Every setting that variables set, in the order in which they are documented. */
export const TABLE = {
  host: option.variable('TILLGATE_HOST', option.string('127.0.0.1'), {
    ...HOST,
    meaning: 'where the API listens: host name or IP address',
  }),
  port: option.variable('TILLGATE_PORT', option.number(PORT, 3000), {
    expected: PORT_EXPECTED,
    meaning: 'where the API listens: port; 0 takes any free one',
  }),
  baseUrl: option.variable('TILLGATE_BASE_URL', option.string(), {
    ...url(),
    fallback: { words: 'http://HOST:PORT' },
    example: 'https://api.example.com',
    meaning: '{base_url}: public URL of the API, also its RFC 9728 resource',
  }),
  ...OF_GATE,
  authPort: option.variable('TILLGATE_AUTH_PORT', option.number(PORT, 4000), {
    expected: PORT_EXPECTED,
    meaning: 'embedded token server: port',
  }),
  dataDir: option.variable('TILLGATE_DATA_DIR', option.string('.tillgate'), {
    ...matching(/^[^\0]+$/, 'a directory'),
    meaning: 'embedded token server: where clients and keys are kept',
  }),
  adminToken: option.variable('TILLGATE_ADMIN_TOKEN', option.secret(16), {
    ...matching(/^[A-Za-z0-9._~+/-]{16,}=*$/, 'at least 16 of the characters A-Z a-z 0-9 . _ ~ + / -'),
    fallback: { words: 'none' },
    example: '$(openssl rand -hex 32)',
    meaning:
      'bearer token that /clients and /generations of the token server ask for; sent to the origin of TILLGATE_AUTH_URL only',
  }),
  corsOrigins: option.variable('TILLGATE_CORS_ORIGINS', ORIGINS, {
    fallback: { words: 'none' },
    example: 'https://shop.example.com,https://app.example.com',
    meaning: 'origins whose pages may call the API (CORS), between commas or blanks',
  }),
  rateLimit: option.variable('TILLGATE_RATE_LIMIT', RATE_LIMIT, {
    fallback: { text: '6000/m' },
    example: '6000/m',
    meaning: 'requests per client of an issuer on the API',
  }),
  tokenRateLimit: option.variable('TILLGATE_TOKEN_RATE_LIMIT', RATE_LIMIT, {
    fallback: { text: '60/m' },
    example: '60/m',
    meaning: 'requests per client id and IP address on the token endpoint',
  }),
  trustProxy: option.variable('TILLGATE_TRUST_PROXY', PROXIES, {
    example: '10.0.0.0/8',
    meaning:
      "whose X-Forwarded-* headers are believed, as Express's `trust proxy`: the number of proxies, or their IP addresses and subnets",
  }),
  logLevel: option.variable('TILLGATE_LOG_LEVEL', LOG_LEVEL, { meaning: 'least severe level that is logged' }),
};

/** Every variable, with the name of what it sets: `scopes.from`. */
export const VARIABLES = variablesIn(TABLE);

function variablesIn(table: OptionTable, prefix = ''): (Variable & { readonly sets: string })[] {
  return Object.entries(table).flatMap(([name, { table: nested, variable }]) => {
    if (nested) return variablesIn(nested, `${prefix}${name}.`);
    return variable ? [{ ...variable, sets: prefix + name }] : [];
  });
}

/** The rows of a table whose value, or a part of it, a variable sets. */
type RowsWithVariables<Table extends OptionTable> = {
  readonly [
    Key in keyof Table as Table[Key] extends { readonly variable: Variable } | { readonly table: OptionTable }
      ? Key
      : never
  ]: Table[Key];
};

function withVariables<Table extends OptionTable>(table: Table): RowsWithVariables<Table> {
  const rows = Object.entries(table).filter(([, row]) => row.table ?? row.variable);
  return Object.fromEntries(rows) as RowsWithVariables<Table>;
}

/** A setting that no factory has as an option. */
function fromText<Value, Fallback extends Value | undefined = undefined>(
  expected: string,
  convert: (text: string) => Value | undefined,
  fallback?: Fallback,
): Option<Value | Fallback> {
  return option(expected, (given) => given as Value, fallback, { convert });
}

const WINDOWS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** `6000/m`. */
function readRateLimit(text: string): RateLimit | false | undefined {
  if (text === 'off') return false;
  const [, limit, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? [];
  const windowMs = WINDOWS[unit ?? ''];
  return windowMs === undefined ? undefined : Object.freeze({ limit: Number(limit), windowMs });
}

/** Origins (RFC 6454 section 6.2) as browsers send them. */
function readOrigins(text: string): readonly string[] | undefined {
  const list = [...new Set(partsOf(text))];
  const isGood = list.length > 0 && list.every((one) => parseUrl(one)?.origin === one);
  return isGood ? Object.freeze(list) : undefined;
}

/** Express's `trust proxy`: how many proxies, or which. */
function readProxies(text: string): number | readonly string[] | false | undefined {
  if (text === 'off') return false;
  if (/^(100|[1-9]\d?)$/.test(text)) return Number(text);
  const list = partsOf(text);
  return list.length > 0 && list.every(isSubnet) ? Object.freeze(list) : undefined;
}

function isSubnet(text: string): boolean {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && (prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128));
}

function partsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
