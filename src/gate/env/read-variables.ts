import { readFileSync } from 'node:fs';
import { errorLabel } from '../core/logger';
import { describe, didYouMean, nearest } from '../core/words';
import type { Settings } from './settings';
import { VARIABLES, type Variable } from './variables';

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings whose variable has `off` for none. */
type Switchable = 'generationSource' | 'rateLimit' | 'tokenRateLimit';

/** What the variables say, without the settings whose variable is wrong; `false` is `off`. */
export type Given = Partial<Omit<Settings, Switchable>> & {
  readonly [Name in Switchable]?: Settings[Name] | false;
};

const PREFIX = 'TILLGATE_';
/** Variables whose text may be in a file instead, as orchestrators hand out secrets. */
const SECRETS = VARIABLES.filter(({ isSecret }) => isSecret).map(({ name }) => name);
const FILE = '_FILE';
const NAMES: readonly string[] = [...VARIABLES.map(({ name }) => name), ...SECRETS.map((name) => name + FILE)];

/** Reads every variable. `texts` has those of the files too; `problems` one for each unknown name and each wrong value. */
export function readVariables(env: Environment): { texts: Environment; values: Given; problems: string[] } {
  const problems = unknownNames(env);
  const texts = { ...env, ...readFiles(env, problems) };
  const values: Record<string, unknown> = {};
  for (const variable of VARIABLES) {
    const [name = '', member] = variable.sets.split('.');
    if (member === undefined) values[name] = readVariable(variable, texts, problems);
    else if (!Object.hasOwn(values, name)) values[name] = readMembers(name, texts, problems);
  }
  return { texts, values: Object.freeze(values), problems };
}

/** Reads the variables of one setting; `undefined` if none of them is set. Those that it needs are needed with any other. */
function readMembers(setting: string, env: Environment, problems: string[]): object | undefined {
  const variables = VARIABLES.filter(({ sets }) => sets.startsWith(`${setting}.`));
  const given = variables.find(({ name }) => env[name] !== undefined);
  if (!given) return undefined;
  for (const { name, isRequired } of variables) {
    if (!isRequired || env[name] !== undefined) continue;
    problems.push(`${name}: not set, but needed with ${given.name}; set it, or remove the other`);
  }
  const members = variables.map((one) => [one.sets.slice(setting.length + 1), readVariable(one, env, problems)]);
  return Object.freeze(Object.fromEntries(members)) as object;
}

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
