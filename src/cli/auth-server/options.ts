import type { RateLimit } from 'tillgate/env';
import { attempt, dependencies, describe, hostInUrl, isSecureUrl, option, readOptions } from 'tillgate/internal';
import type { TableOf, ValuesOf } from 'tillgate/internal';
import type { Dependencies } from 'tillgate';

/** Options of `createAuthServer()`. */
export interface AuthServerOptions extends Pick<Dependencies, 'logger' | 'clock' | 'schedule'> {
  /** `{auth_url}`: the `iss` of the tokens, byte for byte, and the base of every URL in the metadata. */
  readonly issuer: string;
  /** The `aud` of the tokens. */
  readonly audience: string;
  /** Directory for clients and keys. Made when it is missing; for one process at a time. */
  readonly dataDir: string;
  /** Scopes that may be registered. Default: any. */
  readonly scopes?: readonly string[] | undefined;
  /** `maxTokenAgeSeconds` of the gates: `/generations` has changes for that long, and an hour. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
  /**
   * Bearer token that `/clients` and `/generations` ask for, at least 16 characters. Default: none, only this
   * machine may call them.
   */
  readonly adminToken?: string | undefined;
  /** Address that the server will listen on. Default 127.0.0.1; beyond loopback an admin token is needed. */
  readonly host?: string | undefined;
  /** `exp - iat` of the tokens, in seconds. Default 3600. */
  readonly tokenLifetimeSeconds?: number | undefined;
  /** Token requests per client id and address; `false`: no limit. Default 60 per minute. */
  readonly rateLimit?: RateLimit | false | undefined;
}

const TOKEN_RATE: RateLimit = { limit: 60, windowMs: 60_000 };

const OPTIONS = {
  issuer: option.required(option('an http: or https: URL without query and fragment', readIssuer)),
  audience: option.required(option.string()),
  dataDir: option.required(option.string(), 'the path of a directory'),
  scopes: option('an array of one or more scope names, such as "orders:read"', readScopes),
  maxTokenAgeSeconds: option.number({ unit: 'seconds', min: 1, max: 366 * 86_400, integer: true }, 86_400),
  adminToken: option('16 or more characters of printable ASCII without blanks', readAdminToken),
  host: option.string('127.0.0.1'),
  tokenLifetimeSeconds: option.number({ unit: 'seconds', min: 1, max: 86_400, integer: true }, 3_600),
  rateLimit: option('{ limit, windowMs }, both whole numbers from 1, or false', readRateLimit, TOKEN_RATE),
  ...dependencies('logger', 'clock', 'schedule'),
} satisfies TableOf<AuthServerOptions>;

/** The options, checked and with every default in place. */
export type AuthServerSettings = ValuesOf<typeof OPTIONS>;

/**
 * Reads the options of `createAuthServer()`.
 *
 * @throws TypeError when one is wrong, when this is production, or when other machines could register clients.
 */
export function readAuthServerOptions(options: AuthServerOptions): AuthServerSettings {
  const settings = readOptions('createAuthServer', options, OPTIONS);
  const { adminToken, host } = settings;
  if (process.env['NODE_ENV'] === 'production') {
    throw new TypeError(
      'createAuthServer(): the embedded token server is for development and refuses NODE_ENV=production; ' +
        'set TILLGATE_AUTH_URL to your authorization server',
    );
  }
  if (adminToken === undefined && !isLoopback(host)) {
    throw new TypeError(
      `createAuthServer(): option "host" must be a loopback address, such as 127.0.0.1, unless "adminToken" is set, got ${describe(host)}`,
    );
  }
  return settings;
}

/** Whether only this machine reaches what listens on a host: loopback itself, not what a URL names in its place. */
export function isLoopback(host: string): boolean {
  const named = hostInUrl(host);
  return (named === host || named === `[${host}]`) && attempt(() => isSecureUrl(`http://${named}`)) === true;
}

/** An issuer identifier has neither query nor fragment (RFC 8414 section 2). */
function readIssuer(given: unknown): string | undefined {
  const isIssuer = typeof given === 'string' && /^https?:\/\/[^?#]+$/.test(given) && attempt(() => new URL(given));
  return isIssuer ? given : undefined;
}

function readScopes(given: unknown): readonly string[] | undefined {
  const isScope = (one: unknown): one is string => typeof one === 'string' && isScopeToken(one);
  return Array.isArray(given) && given.length > 0 && given.every(isScope) ? [...given] : undefined;
}

/** RFC 6749 section 3.3: `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )`. */
export function isScopeToken(text: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text);
}

function readAdminToken(given: unknown): string {
  if (typeof given === 'string' && /^[\x21-\x7e]{16,}$/.test(given)) return given;
  // Without the value, which is a secret.
  throw new TypeError(
    'createAuthServer(): option "adminToken" must be 16 or more characters of printable ASCII without blanks',
  );
}

function readRateLimit(given: unknown): RateLimit | false | undefined {
  if (given === false) return false;
  const { limit, windowMs } = Object(given) as Readonly<Record<string, unknown>>;
  const areCounts = [limit, windowMs].every((count) => Number.isSafeInteger(count) && Number(count) >= 1);
  return areCounts ? ({ limit, windowMs } as RateLimit) : undefined;
}
