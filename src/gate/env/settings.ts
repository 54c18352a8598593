import { existsSync, readFileSync } from 'node:fs';
import { ConfigurationError } from '../core/configuration-error';
import { errorLabel } from '../core/logger';
import { readOptions, type OptionTable, type ValuesOf, type Variable } from '../core/options';
import { describe, didYouMean, nearest } from '../core/words';
import { hostInUrl, isSecureUrl } from '../core/urls';
import type { OpaqueOptions } from '../token/opaque-options';
import type { ScopeOptions } from '../token/scopes';
import type { AuthenticateOptions } from '../verifier/options';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../verifier/read-options';
import { OF_GATE, TABLE, VARIABLES, type RateLimit } from './variables';

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of the variables. */
type Values = Omit<ValuesOf<typeof TABLE>, 'issuer' | 'audience' | 'generationSource' | 'scopes' | 'opaque'> & {
  readonly issuer: string | undefined;
  readonly audience: string | readonly string[] | undefined;
  readonly generationSource: string | false | undefined;
  /** `TILLGATE_SCOPE_CLAIMS` and `TILLGATE_SCOPE_MAP`; `undefined` if neither is set. */
  readonly scopes: ScopeOptions | undefined;
  /** `TILLGATE_INTROSPECTION_*`, with the secret; `undefined`: opaque tokens are refused. */
  readonly opaque: OpaqueOptions | undefined;
};

/** Settings that depend on more than one variable, or have no value for `off`. */
interface Computed {
  readonly baseUrl: string;
  /** One, or the list of several. */
  readonly audience: string | readonly string[];
  readonly logLevel: string;
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
export interface Settings extends Omit<Values, keyof Computed>, Computed {}

/** The problem when an authorization server is needed and not configured. */
export const MISSING_ISSUER =
  'TILLGATE_AUTH_URL: not set, expected the URL of the authorization server, for example TILLGATE_AUTH_URL=https://login.example.com; set it, or TILLGATE_ISSUER, or give authenticate() the option "issuer"';

/** What is probably wrong where the issuer is missing. */
function ofDotEnv(): string {
  return existsSync('.env')
    ? '; a .env lies in this folder, which plain node does not read: start the app with node --env-file=.env'
    : '';
}

const PREFIX = 'TILLGATE_';
/** Variables whose text may be in a file instead, as orchestrators hand out secrets. */
const SECRETS = VARIABLES.filter(({ isSecret }) => isSecret).map(({ name }) => name);
const FILE = '_FILE';
const NAMES: readonly string[] = [...VARIABLES.map(({ name }) => name), ...SECRETS.map((name) => name + FILE)];

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
  return settingsBeside({}, env, requireIssuer);
}

/** @param options - what stands for the values of variables that options replace */
function settingsBeside(options: Partial<Values>, env: Environment, requireIssuer: boolean): Settings {
  const problems = unknownNames(env);
  const given = { ...env, ...readFiles(env, problems) };
  const values = readTable(TABLE, given, problems) as Values;
  const hasIssuer = Boolean(given['TILLGATE_ISSUER'] ?? given['TILLGATE_AUTH_URL']);
  problems.push(...contradictions({ ...values, ...options }, given, hasIssuer));
  if (requireIssuer && !hasIssuer) problems.push(MISSING_ISSUER + ofDotEnv());
  if (problems.length > 0) throw new ConfigurationError(problems);
  return withDefaults(values, env['NODE_ENV'] === 'production');
}

/** Fills in the defaults that depend on other settings. */
function withDefaults(values: Values, production: boolean): Settings {
  const { host, port } = values;
  const { baseUrl = `http://${hostInUrl(host)}:${port}` } = values;
  if (isForAllInterfaces(values)) {
    process.emitWarning(`${NOT_CALLABLE}, got ${describe(host)}; ${baseUrl} takes its place`, 'TillgateWarning');
  }
  return Object.freeze({
    ...values,
    baseUrl,
    issuer: values.issuer ?? values.authUrl,
    audience: values.audience ?? baseUrl,
    generationSource: values.generationSource || undefined,
    rateLimit: values.rateLimit || undefined,
    tokenRateLimit: values.tokenRateLimit || undefined,
    production,
  });
}

/** Callers cannot use such an address, and each of them would get it as audience, resource and URL of the metadata. */
function isForAllInterfaces({ host, baseUrl }: Values): boolean {
  return baseUrl === undefined && hostInUrl(host).replace(/^\[(.*)\]$/, '$1') !== host;
}

const NOT_CALLABLE = 'TILLGATE_BASE_URL: not set, and TILLGATE_HOST is an address to listen on, which nobody can call';

/** One problem per unknown `TILLGATE_*` name, in any case: a misspelt setting must not be ignored. */
function unknownNames(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.toUpperCase().startsWith(PREFIX) && !NAMES.includes(name))
    .map((name) => {
      const isOfKubernetes = /_SERVICE_(?:HOST|PORT)|_PORT_\d+_/.test(name);
      return `${name}: unknown variable${isOfKubernetes ? OF_KUBERNETES : didYouMean(name.toUpperCase(), NAMES)}`;
    });
}

/** As TILLGATE_PORT=tcp://10.0.0.1:80 too. */
const OF_KUBERNETES =
  '; Kubernetes sets it for a Service called tillgate: set enableServiceLinks: false in the pod, or name the Service otherwise';

/** Reads the texts of secrets that are in files: `TILLGATE_ADMIN_TOKEN_FILE=/run/secrets/admin-token`. */
function readFiles(env: Environment, problems: string[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const name of SECRETS) {
    const path = env[name + FILE];
    if (path === undefined) continue;
    const failed = (what: string): void => void problems.push(`${name + FILE}: ${what}`);
    if (env[name] !== undefined) {
      failed(`set together with ${name}; remove one of the two`);
      continue;
    }
    try {
      // Editors and `echo` end a file with a line break, which is not part of the secret.
      const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
      if (text === '') failed(`${describe(path)} is empty, expected a file with the value`);
      else texts[name] = text;
    } catch (error) {
      failed(`${describe(path)} cannot be read (${errorLabel(error)}), expected a file with the value`);
    }
  }
  return texts;
}

/** Reads every variable of a table, with one problem for each wrong value. */
function readTable(table: OptionTable, env: Environment, problems: string[]): object {
  const values = Object.entries(table).map(([key, { table: nested, variable }]) => {
    return [key, nested ? readNested(nested, env, problems) : variable && readVariable(variable, env, problems)];
  });
  return Object.freeze(Object.fromEntries(values)) as object;
}

/** Reads the variables of one option; `undefined` if none of them is set. Those that it needs are needed with any other. */
function readNested(table: OptionTable, env: Environment, problems: string[]): object | undefined {
  const rows = Object.values(table).flatMap(({ variable, isRequired }) =>
    variable ? [{ ...variable, isRequired }] : [],
  );
  const given = rows.find(({ name }) => env[name] !== undefined);
  if (!given) return undefined;
  for (const { name, isRequired } of rows) {
    if (!isRequired || env[name] !== undefined) continue;
    problems.push(`${name}: not set, but needed with ${given.name}; set it, or remove the other`);
  }
  return readTable(table, env, problems);
}

function readVariable(variable: Variable, env: Environment, problems: string[]): unknown {
  const { name, fallback, parse } = variable;
  const given = env[name] ?? ('text' in fallback ? fallback.text : undefined);
  if (given === undefined) return undefined;
  const value = given === '' || isQuoted(variable, given) ? undefined : parse(given);
  if (value === undefined) problems.push(problemOf(variable, given));
  return value;
}

/** Whether quotation marks have become part of a value, as by `docker --env-file`. A secret may begin and end with them. */
function isQuoted({ isSecret }: Variable, text: string): boolean {
  return isSecret !== true && /^(["']).*\1$/s.test(text);
}

/** How a refused text is probably meant: a list in the form of lists, or the text between quotation marks. */
function rightForm(variable: Variable, given: string): string | undefined {
  const { name, correct, show, parse } = variable;
  const text = isQuoted(variable, given) ? given.slice(1, -1) : given;
  const isMeant = text !== given && !show && /^[\x21-\x7e]{1,200}$/.test(text) && parse(text) !== undefined;
  return isMeant ? `${name}=${text}` : correct?.(text);
}

function problemOf(variable: Variable, given: string): string {
  const { name, expected, choices, show = describe } = variable;
  const example = `for example ${name}=${variable.example}`;
  if (given === '') return `${name}: set but empty, expected ${expected}; remove it or give a value, ${example}`;
  const near = choices && nearest(given, choices);
  const marks = isQuoted(variable, given) ? ' without quotation marks around it' : '';
  if (name === 'TILLGATE_PORT' && given.startsWith('tcp://')) return `${name}: got ${show(given)}${OF_KUBERNETES}`;
  const right = rightForm(variable, given);
  return `${name}: got ${show(given)}, expected ${expected}${marks}${near ?? `; ${right === undefined ? example : `write ${right}`}`}`;
}

/** Problems of values that contradict each other. */
function contradictions(values: Values, env: Environment, hasIssuer: boolean): string[] {
  const problems: string[] = [];
  if (env['NODE_ENV'] === 'production' && values.host && isForAllInterfaces(values)) {
    problems.push(
      `${NOT_CALLABLE}, got ${describe(values.host)}; set it to the public URL of the API, for example TILLGATE_BASE_URL=https://api.example.com`,
    );
  }
  const { authUrl, issuer, jwksUri, opaque, generationSource } = TABLE;
  for (const [{ variable }, value] of [
    [authUrl, values.authUrl],
    [issuer, values.issuer],
    [jwksUri, values.jwksUri],
    [opaque.table.url, values.opaque?.url],
    [generationSource, values.generationSource],
  ] as const) {
    const { name, show = describe } = variable;
    if (!value || values.allowHttp || isSecureUrl(value)) continue;
    problems.push(
      `${name}: got ${show(value)}, expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on`,
    );
  }
  for (const { name } of [jwksUri.variable, opaque.table.url.variable]) {
    if (hasIssuer || env[name] === undefined) continue;
    problems.push(`${name}: set without an issuer; set TILLGATE_ISSUER to exactly the iss of its tokens`);
  }
  if (values.keys && values.jwksUri !== undefined) {
    problems.push('TILLGATE_KEYS: set together with TILLGATE_JWKS_URI; remove one of the two');
  }
  if (values.keys && !values.opaque) {
    problems.push(
      'TILLGATE_KEYS: got "none" without TILLGATE_INTROSPECTION_CLIENT_ID, so no token could be accepted; set it with its secret, or remove TILLGATE_KEYS',
    );
  }
  if (values.generationSource && values.generationClaim === false) {
    problems.push(
      'TILLGATE_GENERATIONS: set while TILLGATE_GENERATION_CLAIM=off checks no generation; remove one of the two',
    );
  }
  // Port 0 takes any free port, so it may be used twice. With an issuer no token server is started.
  if (!hasIssuer && values.port && values.port === values.authPort) {
    problems.push(`TILLGATE_AUTH_PORT: got ${values.port}, which is also the port of TILLGATE_PORT; give each its own`);
  }
  return problems;
}

/** `keys` is there too, and not declared: next to `jwksUri` a type with both would fit no options. */
type SetByVariables = Pick<Settings, Exclude<keyof typeof OF_GATE, 'keys'>>;

/** The options of `authenticate()` that the `TILLGATE_*` variables set. */
export interface SettingsOptions extends SetByVariables {
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
  const { issuer, authUrl = issuer, baseUrl: resource, production } = settings;
  if (issuer === undefined || authUrl === undefined) throw new ConfigurationError([MISSING_ISSUER]);
  const names = Object.keys(OF_GATE) as (keyof typeof OF_GATE)[];
  const ofGate = Object.fromEntries(names.map((name) => [name, settings[name]])) as unknown as SetByVariables;
  return { ...ofGate, issuer, authUrl, resource, exposeReasons: !production };
}

/**
 * Adds options of `authenticate()` that name no issuer to what the variables say. One that is not `undefined` replaces the value
 * of its variable whole.
 *
 * @throws TypeError where `issuer` is there, and undefined, and where an option is unknown
 * @throws ConfigurationError when a variable is wrong, or none names the issuer
 */
export function besideVariables(options: AuthenticateOptions): AuthenticateOptions {
  readOptions('authenticate', options, GATE_OPTIONS, { alsoKnown: ['issuers', ...Object.keys(ISSUER_OPTIONS)] });
  if (Object.hasOwn(options, 'issuers')) return options;
  if (Object.hasOwn(options, 'issuer')) {
    throw new TypeError(`authenticate(): option "issuer" must be ${TABLE.issuer.expected}, got undefined${ofDotEnv()}`);
  }
  const own = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const { keys, jwksUri, generationClaim, allowHttp, opaque } = own as Partial<Settings>;
  const dropped = {
    ...(keys !== undefined && { jwksUri: undefined }),
    ...(jwksUri !== undefined && { keys: undefined }),
    ...(generationClaim === false && { generationSource: undefined }),
  };
  const replaced = Object.fromEntries(Object.keys(own).map((name) => [name, undefined]));
  // What the options say decides which of the other values contradict each other.
  const deciding = { ...(allowHttp !== undefined && { allowHttp }), ...(opaque && { opaque: {} as OpaqueOptions }) };
  const settings = settingsBeside({ ...replaced, ...dropped, ...deciding }, process.env, true);
  return { ...authenticateOptions(settings), ...dropped, ...own };
}
