import { readFileSync } from 'node:fs';
import { ConfigurationError } from '../core/errors';
import { errorLabel } from '../core/logger';
import { describe, didYouMean, nearest } from '../core/options';
import { isSecureUrl } from '../core/urls';
import type { OpaqueOptions } from '../token/introspection/endpoint';
import type { ScopeOptions } from '../token/scopes';
import { OF_GATE, TABLE, VARIABLES } from './variables';
import type { RateLimit } from './variable-types';
import type { Variable } from './variables';

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of the variables when there are no problems. */
type Values = {
  readonly [Key in keyof typeof TABLE]: (typeof TABLE)[Key] extends Variable<infer Value> ? Value : never;
};

type Key = keyof typeof TABLE;

/** The problem when an authorization server is needed and not configured. */
export const MISSING_ISSUER =
  'TILLGATE_AUTH_URL: not set, expected the URL of the authorization server, for example TILLGATE_AUTH_URL=https://login.example.com; set it, or TILLGATE_ISSUER';

const PREFIX = 'TILLGATE_';
/** Variables whose text may be in a file instead, as orchestrators hand out secrets. */
const SECRETS = VARIABLES.filter(({ type }) => type.isSecret).map(({ name }) => name);
const FILE = '_FILE';
const NAMES: readonly string[] = [...VARIABLES.map(({ name }) => name), ...SECRETS.map((name) => name + FILE)];

/** Variables whose settings differ from their values. */
type Completed = 'scopeClaims' | 'scopeMap' | `introspection${'Url' | 'ClientId' | 'ClientSecret'}` | keyof Computed;

/** Settings that depend on more than one variable, or have no value for `off`. */
interface Computed {
  readonly baseUrl: string;
  /** `TILLGATE_ISSUER`, else `TILLGATE_AUTH_URL`, byte for byte. */
  readonly issuer: string | undefined;
  readonly audience: string;
  readonly logLevel: string;
  /** `TILLGATE_SCOPE_CLAIMS` and `TILLGATE_SCOPE_MAP`; `undefined` if neither is set. */
  readonly scopes: ScopeOptions | undefined;
  /** `TILLGATE_INTROSPECTION_*`, with the secret; `undefined`: opaque tokens are refused. */
  readonly opaque: OpaqueOptions | undefined;
  /** URL of the source; `undefined`: generations are learned from tokens only. */
  readonly generationSource: string | undefined;
  /** `undefined`: no limit. */
  readonly rateLimit: RateLimit | undefined;
  /** `undefined`: no limit. */
  readonly tokenRateLimit: RateLimit | undefined;
  /** Whether `NODE_ENV` is `production`. */
  readonly production: boolean;
}

/** The checked values of the `TILLGATE_*` variables, with every default. Frozen. */
export interface Settings extends Omit<Values, Completed>, Computed {}

/**
 * Reads the settings from the environment.
 *
 * @param needs - `requireIssuer`: a missing issuer is a problem too, for what becomes a gate
 * @throws ConfigurationError with all problems: unknown names, wrong values, values that contradict each other.
 */
export function readSettings(
  env: Environment = process.env,
  { requireIssuer = false }: { readonly requireIssuer?: boolean } = {},
): Settings {
  const files = readFiles(env);
  const given = { ...env, ...files.texts };
  const { values, problems } = readValues(given);
  const isIssuerMissing = requireIssuer && !given['TILLGATE_ISSUER'] && !given['TILLGATE_AUTH_URL'];
  const missing = isIssuerMissing ? [MISSING_ISSUER] : [];
  const all = [...unknownNames(env), ...files.problems, ...problems, ...contradictions(values, given), ...missing];
  if (all.length > 0) throw new ConfigurationError(all);
  return withDefaults(values as Values, env['NODE_ENV'] === 'production');
}

/** Fills in the defaults that depend on other settings. */
function withDefaults(complete: Values, production: boolean): Settings {
  const { scopeClaims, scopeMap, introspectionUrl, introspectionClientId, introspectionClientSecret, ...values } =
    complete;
  const baseUrl = values.baseUrl ?? `http://${hostOf(values.host)}:${values.port}`;
  return Object.freeze({
    ...values,
    scopes: scopeClaims || scopeMap ? Object.freeze({ from: scopeClaims, map: scopeMap }) : undefined,
    opaque:
      introspectionClientId === undefined || introspectionClientSecret === undefined
        ? undefined
        : Object.freeze({
            url: introspectionUrl,
            clientId: introspectionClientId,
            clientSecret: introspectionClientSecret,
          }),
    baseUrl,
    issuer: values.issuer ?? values.authUrl,
    audience: values.audience ?? baseUrl,
    generationSource: values.generationSource || undefined,
    rateLimit: values.rateLimit || undefined,
    tokenRateLimit: values.tokenRateLimit || undefined,
    production,
  });
}

/** An IPv6 address is in brackets (RFC 3986 section 3.2.2). */
function hostOf(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** One problem per unknown `TILLGATE_*` name, in any case: a misspelt setting must not be ignored. */
function unknownNames(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.toUpperCase().startsWith(PREFIX) && !NAMES.includes(name))
    .map((name) => `${name}: unknown variable${didYouMean(name.toUpperCase(), NAMES)}`);
}

/** Reads the texts of secrets that are in files: `TILLGATE_ADMIN_TOKEN_FILE=/run/secrets/admin-token`. */
function readFiles(env: Environment): { texts: Record<string, string>; problems: string[] } {
  const texts: Record<string, string> = {};
  const problems: string[] = [];
  for (const name of SECRETS) {
    const path = env[name + FILE];
    if (path === undefined) continue;
    if (env[name] !== undefined) {
      problems.push(`${name + FILE}: set together with ${name}; remove one of the two`);
      continue;
    }
    let wrong = 'is empty';
    try {
      // Editors and `echo` end a file with a line break, which is not part of the secret.
      const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
      if (text !== '') {
        texts[name] = text;
        continue;
      }
    } catch (error) {
      wrong = `cannot be read (${errorLabel(error)})`;
    }
    problems.push(`${name + FILE}: ${describe(path)} ${wrong}, expected a file with the value`);
  }
  return { texts, problems };
}

/** Reads every variable of the table, with one problem for each wrong value. */
function readValues(env: Environment): { values: Partial<Values>; problems: string[] } {
  const values: Partial<Record<Key, unknown>> = {};
  const problems: string[] = [];
  for (const [key, variable] of Object.entries(TABLE) as [Key, Variable][]) {
    const given = env[variable.name] ?? defaultText(variable);
    if (given === undefined) continue;
    const value = given === '' ? undefined : variable.type.parse(given);
    if (value === undefined) problems.push(problemOfVariable(variable, given));
    values[key] = value;
  }
  return { values: values as Partial<Values>, problems };
}

/** Problems of values that contradict each other. */
function contradictions(values: Partial<Values>, env: Environment): string[] {
  const isSet = (key: Key) => env[TABLE[key].name] !== undefined;
  const external = isSet('issuer') || isSet('authUrl');
  const problems = [...insecureUrls(values), ...incomplete(isSet)];
  for (const key of ['jwksUri', 'introspectionUrl'] as const) {
    if (!isSet(key) || external) continue;
    problems.push(`${TABLE[key].name}: set without an issuer; set TILLGATE_ISSUER to exactly the iss of its tokens`);
  }
  if (values.generationSource && values.generationClaim === false) {
    problems.push(
      'TILLGATE_GENERATIONS: set while TILLGATE_GENERATION_CLAIM=off checks no generation; remove one of the two',
    );
  }
  return [...problems, ...sharedPorts(values, external)];
}

function defaultText({ fallback }: Variable): string | undefined {
  return 'text' in fallback ? fallback.text : undefined;
}

function problemOfVariable({ name, type }: Variable, given: string): string {
  const example = `for example ${name}=${type.example}`;
  if (given === '') return `${name}: set but empty, expected ${type.expected}; remove it or give a value, ${example}`;
  const near = type.choices && nearest(given, type.choices);
  return `${name}: got ${(type.show ?? describe)(given)}, expected ${type.expected}${near ?? `; ${example}`}`;
}

function insecureUrls(values: Partial<Values>): string[] {
  if (values.allowHttp) return [];
  return (['authUrl', 'issuer', 'jwksUri', 'introspectionUrl', 'generationSource'] as const)
    .filter((key) => values[key] && !isSecureUrl(values[key]))
    .map((key) => {
      const { name, type } = TABLE[key];
      const got = (type.show ?? describe)(String(values[key]));
      return `${name}: got ${got}, expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on`;
    });
}

/** The introspection endpoint needs a client id and its secret: one without the other is a mistake. */
function incomplete(isSet: (key: Key) => boolean): string[] {
  const needed = ['introspectionClientId', 'introspectionClientSecret'] as const;
  const given = ([...needed, 'introspectionUrl'] as const).find(isSet);
  if (given === undefined) return [];
  return needed
    .filter((key) => !isSet(key))
    .map((key) => `${TABLE[key].name}: not set, but needed with ${TABLE[given].name}; set it, or remove the other`);
}

/** Port 0 takes any free port, so it may be used twice. */
function sharedPorts({ port, authPort }: Partial<Values>, external: boolean): string[] {
  const taken = new Map<number, string>();
  const problems: string[] = [];
  const claims = [
    ['TILLGATE_PORT', port],
    ['TILLGATE_AUTH_PORT', external ? undefined : authPort],
  ] as const;
  for (const [name, number] of claims) {
    if (!number) continue;
    const other = taken.get(number);
    if (other) problems.push(`${name}: got ${number}, which is also the port of ${other}; give each its own`);
    taken.set(number, name);
  }
  return problems;
}

/** The options of `authenticate()` that the `TILLGATE_*` variables set. */
export interface SettingsOptions extends Pick<Settings, keyof typeof OF_GATE | 'scopes' | 'opaque'> {
  readonly issuer: string;
  readonly authUrl: string;
  readonly resource: string;
  readonly exposeReasons: boolean;
}

/**
 * Makes the options of `authenticate()` from the settings.
 *
 * @throws ConfigurationError when no variable names the issuer.
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { authenticateOptions, readSettings } from 'tillgate/env';
 *
 * const gate = authenticate({ ...authenticateOptions(readSettings()), realm: 'shop' });
 * ```
 */
export function authenticateOptions(settings: Settings): SettingsOptions {
  const { issuer, authUrl = issuer, scopes, opaque, baseUrl: resource, production } = settings;
  if (issuer === undefined || authUrl === undefined) throw new ConfigurationError([MISSING_ISSUER]);
  const names = Object.keys(OF_GATE) as (keyof typeof OF_GATE)[];
  const plain = Object.fromEntries(names.map((name) => [name, settings[name]])) as Pick<Settings, keyof typeof OF_GATE>;
  return { ...plain, issuer, authUrl, scopes, opaque, resource, exposeReasons: !production };
}
