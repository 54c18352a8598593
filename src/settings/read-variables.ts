import { isSecureUrl } from '../core/urls';
import { describe, didYouMean } from '../core/options';
import { TABLE, VARIABLES } from './variables';
import type { Variable } from './variables';

/** The environment of a process, or a stand-in for it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the variables say; `undefined` is not set, or not readable. */
export type Values = { readonly [Key in keyof typeof TABLE]: ReturnType<(typeof TABLE)[Key]['type']['parse']> };

/** The values once there are no problems: those with a default text are there. */
export type CompleteValues = {
  readonly [Key in keyof Values]: (typeof TABLE)[Key]['fallback'] extends { readonly text: string }
    ? Exclude<Values[Key], undefined>
    : Values[Key];
};

type Key = keyof typeof TABLE;

/** The problem of whoever needs an authorization server and is not told of one. */
export const MISSING_ISSUER =
  'TILLGATE_AUTH_URL: not set, expected the address of the authorization server, for example TILLGATE_AUTH_URL=https://login.example.com; set it, or TILLGATE_ISSUER';

const PREFIX = 'TILLGATE_';
const NAMES: readonly string[] = VARIABLES.map(({ name }) => name);

/** One problem per `TILLGATE_*` name that means nothing: a misspelt setting must not pass for its default. */
export function unknownNames(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !NAMES.includes(name))
    .map((name) => `${name}: unknown variable${didYouMean(name, NAMES)}`);
}

/** Reads every variable of the table, with one problem for each that does not fit. */
export function readValues(env: Environment): { values: Values; problems: string[] } {
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

/** Problems of values that are right one by one and wrong together. */
export function contradictions(values: Values, env: Environment): string[] {
  const isSet = (key: Key) => env[TABLE[key].name] !== undefined;
  const external = isSet('issuer') || isSet('authUrl');
  const problems: string[] = insecureAddresses(values);
  if (isSet('jwksUri') && !external) {
    problems.push('TILLGATE_JWKS_URI: set without an issuer; set TILLGATE_ISSUER to exactly the iss of its tokens');
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

function insecureAddresses(values: Values): string[] {
  if (values.allowHttp) return [];
  return (['authUrl', 'issuer', 'jwksUri', 'generationSource'] as const)
    .filter((key) => values[key] && !isSecureUrl(values[key]))
    .map((key) => {
      const { name, type } = TABLE[key];
      const got = (type.show ?? describe)(String(values[key]));
      return `${name}: got ${got}, expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on`;
    });
}

/** Port 0 is any free one, so it can be given twice. */
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
    if (other) problems.push(`${name}: got ${number}, which is the port of ${other} too; give each its own`);
    taken.set(number, name);
  }
  return problems;
}
