import { ConfigurationError } from '../core/configuration-error';
import { describe, didYouMean } from '../core/options';
import type { PresetName } from '../core/preset-names';
import { isSecureUrl } from '../core/urls';
import type { IntrospectionOptions } from '../token/introspection/endpoint';
import type { ScopeOptions } from '../token/scope-options';
import type { RateLimit } from './variable-types';
import { TABLE, VARIABLES } from './variables';
import type { Variable } from './variables';

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of the variables; `undefined` if not set or wrong. */
type Values = { readonly [Key in keyof typeof TABLE]: ReturnType<(typeof TABLE)[Key]['type']['parse']> };

/** The values when there are no problems: those with a default are present. */
type CompleteValues = {
  readonly [Key in keyof Values]: (typeof TABLE)[Key]['fallback'] extends { readonly text: string }
    ? Exclude<Values[Key], undefined>
    : Values[Key];
};

type Key = keyof typeof TABLE;

/** The problem when an authorization server is needed and not configured. */
export const MISSING_ISSUER =
  'TILLGATE_AUTH_URL: not set, expected the URL of the authorization server, for example TILLGATE_AUTH_URL=https://login.example.com; set it, or TILLGATE_ISSUER';

const PREFIX = 'TILLGATE_';
const NAMES: readonly string[] = VARIABLES.map(({ name }) => name);

/** The checked values of the `TILLGATE_*` variables, with every default. Frozen. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly baseUrl: string;
  readonly authUrl: string | undefined;
  /** `TILLGATE_ISSUER`, else `TILLGATE_AUTH_URL`, byte for byte. */
  readonly issuer: string | undefined;
  readonly audience: string;
  readonly jwksUri: string | undefined;
  readonly preset: PresetName;
  /** `TILLGATE_SCOPE_CLAIMS` and `TILLGATE_SCOPE_MAP`; `undefined` if neither is set. */
  readonly scopes: ScopeOptions | undefined;
  /** `TILLGATE_INTROSPECTION_*`, with the secret; `undefined`: opaque tokens are refused. */
  readonly introspection: IntrospectionOptions | undefined;
  /** Name of the claim, `iat`, `false` for off, or `undefined` for that of the preset. */
  readonly generationClaim: string | false | undefined;
  /** URL of the source; `undefined`: generations are learned from tokens only. */
  readonly generationSource: string | undefined;
  readonly maxStalenessMs: number;
  readonly maxSilenceMs: number;
  readonly onStale: 'reject' | 'accept';
  readonly keysMaxAgeMs: number;
  readonly keysStaleMs: number;
  readonly clockToleranceSeconds: number;
  readonly maxTokenAgeSeconds: number;
  readonly authPort: number;
  readonly dataDir: string;
  readonly adminPort: number | undefined;
  readonly adminToken: string | undefined;
  /** `undefined`: no limit. */
  readonly rateLimit: RateLimit | undefined;
  /** `undefined`: no limit. */
  readonly tokenRateLimit: RateLimit | undefined;
  readonly allowHttp: boolean;
  readonly logLevel: string;
  /** Whether `NODE_ENV` is `production`. */
  readonly production: boolean;
}

/**
 * Reads the settings from the environment.
 *
 * @throws ConfigurationError with all problems: unknown names, wrong values, values that contradict each other.
 */
export function readSettings(env: Environment = process.env): Settings {
  const { values, problems } = readValues(env);
  const all = [...unknownNames(env), ...problems, ...contradictions(values, env)];
  if (all.length > 0) throw new ConfigurationError(all);
  return withDefaults(values as CompleteValues, env['NODE_ENV'] === 'production');
}

/** Fills in the defaults that depend on other settings. */
function withDefaults(complete: CompleteValues, production: boolean): Settings {
  const { scopeClaims, scopeMap, introspectionUrl, introspectionClientId, introspectionClientSecret, ...values } =
    complete;
  const baseUrl = values.baseUrl ?? defaultBaseUrl(values.host, values.port);
  return Object.freeze({
    ...values,
    scopes: scopeClaims || scopeMap ? Object.freeze({ from: scopeClaims, map: scopeMap }) : undefined,
    introspection:
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
    adminPort: values.adminPort === false ? undefined : values.adminPort,
    rateLimit: values.rateLimit || undefined,
    tokenRateLimit: values.tokenRateLimit || undefined,
    production,
  });
}

function defaultBaseUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** One problem per unknown `TILLGATE_*` name, in any case: a misspelt setting must not be ignored. */
function unknownNames(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.toUpperCase().startsWith(PREFIX) && !NAMES.includes(name))
    .map((name) => `${name}: unknown variable${didYouMean(name.toUpperCase(), NAMES)}`);
}

/** Reads every variable of the table, with one problem for each wrong value. */
function readValues(env: Environment): { values: Values; problems: string[] } {
  const values: Partial<Record<Key, unknown>> = {};
  const problems: string[] = [];
  for (const [key, variable] of Object.entries(TABLE) as [Key, Variable][]) {
    const given = env[variable.name] ?? defaultText(variable);
    if (given === undefined) continue;
    const value = given === '' ? undefined : variable.type.parse(given);
    if (value === undefined) problems.push(problemOf(variable, given));
    values[key] = value;
  }
  return { values: values as Values, problems };
}

/** Problems of values that contradict each other. */
function contradictions(values: Values, env: Environment): string[] {
  const isSet = (key: Key) => env[TABLE[key].name] !== undefined;
  const external = isSet('issuer') || isSet('authUrl');
  const problems = [...insecureUrls(values), ...incompleteIntrospection(isSet)];
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

function problemOf({ name, type }: Variable, given: string): string {
  const fix = `for example ${name}=${type.example}`;
  if (given === '') return `${name}: set but empty, expected ${type.expected}; remove it or give a value, ${fix}`;
  return `${name}: got ${(type.show ?? describe)(given)}, expected ${type.expected}; ${fix}`;
}

function insecureUrls(values: Values): string[] {
  if (values.allowHttp) return [];
  return (['authUrl', 'issuer', 'jwksUri', 'introspectionUrl', 'generationSource'] as const)
    .filter((key) => values[key] && !isSecureUrl(values[key]))
    .map((key) => {
      const { name, type } = TABLE[key];
      const got = (type.show ?? describe)(String(values[key]));
      return `${name}: got ${got}, expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on`;
    });
}

/** The endpoint is asked with a client id and its secret: one without the other is a mistake. */
function incompleteIntrospection(isSet: (key: Key) => boolean): string[] {
  const credential = ['introspectionClientId', 'introspectionClientSecret'] as const;
  const given = [...credential, 'introspectionUrl' as const].find(isSet);
  if (given === undefined) return [];
  return credential
    .filter((key) => !isSet(key))
    .map((key) => `${TABLE[key].name}: not set, but needed with ${TABLE[given].name}; set it, or remove the other`);
}

/** Port 0 takes any free port, so it may be used twice. */
function sharedPorts({ port, authPort, adminPort }: Values, external: boolean): string[] {
  const taken = new Map<number, string>();
  const problems: string[] = [];
  const claims = [
    ['TILLGATE_PORT', port],
    ['TILLGATE_AUTH_PORT', external ? undefined : authPort],
    ['TILLGATE_ADMIN_PORT', adminPort],
  ] as const;
  for (const [name, number] of claims) {
    if (!number) continue;
    const other = taken.get(number);
    if (other) problems.push(`${name}: got ${number}, which is also the port of ${other}; give each its own`);
    taken.set(number, name);
  }
  return problems;
}
