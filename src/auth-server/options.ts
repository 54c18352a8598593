import { systemClock, systemSchedule } from '../core/clock';
import type { Dependencies } from '../core/dependencies';
import { isObject, ownMembers } from '../core/objects';
import { isList, readOptions } from '../core/options';
import type { OptionReader } from '../core/options';
import { isLoopbackHost } from '../core/urls';
import type { GenerationSource } from '../generation/log';
import type { RateLimit } from '../settings/variables';
import { isScopeToken } from '../token/scopes';

/** Algorithms that the token server signs with (RFC 7518 section 3.1). */
export type SigningAlgorithm = 'RS256' | 'ES256';

/** Options of `createAuthServer()`. */
export interface AuthServerOptions extends Pick<Dependencies, 'logger' | 'clock' | 'schedule'> {
  /** `{auth_url}`: the `iss` of the tokens, byte for byte, and the base of every URL in the metadata. */
  readonly issuer: string;
  /** The `aud` of the tokens. */
  readonly audience: string;
  /** Directory for clients and keys. Made when it is missing; belongs to one process of one machine at a time. */
  readonly dataDir: string;
  /** Scopes that may be registered. Default: any. */
  readonly scopes?: readonly string[] | undefined;
  /** Gets each change once it is on disk, and again what it has lost. Default: none, `/generations` has every change. */
  readonly generationSource?: GenerationSource | undefined;
  /** `maxTokenAgeSeconds` of the gates: changes are published for that long, and an hour. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
  /**
   * Bearer token that `/clients`, `/keys` and `/generations` ask for, at least 16 characters. Default: none, only this
   * machine may call them.
   */
  readonly adminToken?: string | undefined;
  /** Address that the server will listen on. Default 127.0.0.1; beyond loopback an admin token is needed. */
  readonly host?: string | undefined;
  /** `exp - iat` of the tokens, in seconds. Default 3600. */
  readonly tokenLifetimeSeconds?: number | undefined;
  /** Default RS256. A change of the algorithm makes a new key. */
  readonly signingAlgorithm?: SigningAlgorithm | undefined;
  /** Token requests, and wrong secrets at introspection, per client id and address; `false`: no limit. Default 60 per minute. */
  readonly rateLimit?: RateLimit | false | undefined;
  /** Origins whose pages may call the token endpoint (CORS), for a documentation page. Default: none. */
  readonly browserOrigins?: readonly string[] | undefined;
  /** Whether this is production, where the server refuses to start. Default: whether `NODE_ENV` is `production`. */
  readonly production?: boolean | undefined;
}

/** The options, checked and with every default in place. */
export type AuthServerSettings = Readonly<ReturnType<typeof readSettings>>;

const OPTIONS = [
  'issuer',
  'audience',
  'dataDir',
  'scopes',
  'generationSource',
  'maxTokenAgeSeconds',
  'adminToken',
  'host',
  'tokenLifetimeSeconds',
  'signingAlgorithm',
  'rateLimit',
  'browserOrigins',
  'production',
  'logger',
  'clock',
  'schedule',
] as const satisfies readonly (keyof AuthServerOptions)[];

const DEFAULT_RATE_LIMIT: RateLimit = { limit: 60, windowMs: 60_000 };

type Reader = OptionReader<(typeof OPTIONS)[number]>;

/**
 * Reads the options of `createAuthServer()`.
 *
 * @throws TypeError when one is wrong, when this is production, or when other machines could register clients.
 */
export function readAuthServerOptions(options: AuthServerOptions): AuthServerSettings {
  const given = readOptions('createAuthServer', options, OPTIONS);
  if (given.boolean('production', process.env['NODE_ENV'] === 'production')) {
    throw new TypeError(
      'createAuthServer(): the embedded token server is for development and refuses NODE_ENV=production; ' +
        'set TILLGATE_AUTH_URL to your authorization server',
    );
  }
  return readSettings(given, ownMembers(options));
}

function readSettings(given: Reader, options: AuthServerOptions) {
  const { scopes, generationSource, rateLimit = DEFAULT_RATE_LIMIT, browserOrigins = [] } = options;
  const issuer = given.string('issuer');
  const adminToken = given.string('adminToken');
  const host = given.string('host') ?? '127.0.0.1';
  if (!isIssuer(issuer)) given.refuse('issuer', 'an http: or https: URL without query and fragment');
  if (scopes !== undefined && !isScopeList(scopes)) {
    given.refuse('scopes', 'an array of one or more scope names, such as "orders:read"');
  }
  if (generationSource !== undefined && typeof generationSource?.append !== 'function') {
    given.refuse('generationSource', 'a source with append(), such as redisGenerations()');
  }
  if (adminToken !== undefined && !/^[\x21-\x7e]{16,}$/.test(adminToken)) {
    // Not by refuse(), which quotes the value.
    throw new TypeError(
      'createAuthServer(): option "adminToken" must be 16 or more characters of printable ASCII without blanks',
    );
  }
  if (adminToken === undefined && !isLoopbackHost(host)) {
    given.refuse('host', 'a loopback address, such as 127.0.0.1, unless "adminToken" is set');
  }
  if (rateLimit !== false && !isRateLimit(rateLimit)) {
    given.refuse('rateLimit', '{ limit, windowMs }, both whole numbers from 1, or false');
  }
  if (!isList(browserOrigins) || !browserOrigins.every(isOrigin)) {
    given.refuse('browserOrigins', 'an array of origins, such as "http://127.0.0.1:3000"');
  }
  const lifetime = { unit: 'seconds', min: 1, max: 86_400, integer: true };
  return {
    issuer,
    audience: given.string('audience') ?? given.refuse('audience', 'a non-empty string'),
    dataDir: given.string('dataDir') ?? given.refuse('dataDir', 'the path of a directory'),
    scopes: scopes && [...scopes],
    generationSource,
    maxTokenAgeSeconds: given.number('maxTokenAgeSeconds', 86_400, { unit: 'seconds', min: 1, integer: true }),
    adminToken,
    tokenLifetimeSeconds: given.number('tokenLifetimeSeconds', 3_600, lifetime),
    signingAlgorithm: given.oneOf('signingAlgorithm', ['RS256', 'ES256'], 'RS256'),
    rateLimit,
    browserOrigins: [...browserOrigins],
    logger: given.logger('logger'),
    clock: given.callable('clock', systemClock),
    schedule: given.callable('schedule', systemSchedule),
  };
}

/** An issuer identifier has neither query nor fragment (RFC 8414 section 2). */
function isIssuer(issuer: string | undefined): issuer is string {
  return issuer !== undefined && URL.canParse(issuer) && /^https?:\/\/[^?#]+$/.test(issuer);
}

function isScopeList(value: unknown): boolean {
  return isList(value) && value.length > 0 && value.every((one) => typeof one === 'string' && isScopeToken(one));
}

/** An origin as browsers send it (RFC 6454 section 6.2); neither `null` nor `*`. */
function isOrigin(value: unknown): boolean {
  return typeof value === 'string' && URL.canParse(value) && new URL(value).origin === value;
}

function isRateLimit(value: unknown): boolean {
  return (
    isObject(value) && [value['limit'], value['windowMs']].every((one) => Number.isSafeInteger(one) && Number(one) >= 1)
  );
}
