import { guardSchedule, systemClock, systemSchedule, type Schedule } from './clock';
import { consoleLogger, errorText, guardLogger, silentLogger, type Logger } from './logger';
import { attempt, ownMembers } from './objects';
import { describe, didYouMean, nearest } from './words';

/** How a value is written in an environment variable. */
export interface TextForm<Value = unknown> {
  /** As the object of a sentence: `a port number from 0 to 65535`. */
  readonly expected: string;
  /** The value; `undefined` if the text is of another form. */
  readonly parse: (text: string) => Value | undefined;
  /** The accepted texts, if there is a fixed list. */
  readonly choices?: readonly string[];
  /** Whether it can hold a secret: then `<name>_FILE` may name a file with the text. */
  readonly isSecret?: boolean;
  /** Makes a refused text safe to show. Default: as it is. */
  readonly show?: (text: string) => string;
  /** How a refused text is probably meant, as the object of "write". */
  readonly correct?: (text: string) => string | undefined;
}

/** One row of the table of a factory: what its value must be, and what it is when it is absent. */
export interface Option<Value> {
  /** What a value must be: `a non-empty string`. */
  readonly expected: string;
  /** The default; `undefined` where there is none, or where it depends on other options. */
  readonly fallback: unknown;
  /** Returns the checked value of an option, or throws the TypeError of `refuseOption()`. */
  readonly read: (given: unknown, at: OptionPlace) => Value;
  /** How an environment variable writes a value. */
  readonly text: TextForm;
  /** Whether it cannot be left out. */
  readonly isRequired?: boolean;
  /** The options in it, if its value is an object of them. */
  readonly table?: OptionTable;
}

/** Where an option is given, for messages. */
export interface OptionPlace {
  readonly factory: string;
  /** With the options that it is nested in: `dpop.nonce`. */
  readonly name: string;
}

/** The rows of a factory, by their names. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The checked options of a table. */
export type ValuesOf<Table extends OptionTable> = {
  readonly [Key in keyof Table]: Table[Key] extends Option<infer Value> ? Value : never;
};

/** The table of an interface has exactly its members: `{ ... } satisfies TableOf<XyzOptions>`. */
export type TableOf<Options> = { readonly [Key in keyof Required<Options>]: Option<unknown> };

/**
 * Checks the options of `factory` by their table. Only own members count, and the result has no prototype, so that a
 * polluted one adds nothing.
 *
 * @param context - `parent`: the option whose value this is; `alsoKnown`: names that may stand next to those of the table
 * @throws TypeError that names the factory, the option, what was got and what is expected
 */
export function readOptions<Table extends OptionTable>(
  factory: string,
  given: unknown,
  table: Table,
  context: { readonly parent?: string; readonly alsoKnown?: readonly string[] } = {},
): ValuesOf<Table> {
  const { parent = '', alsoKnown = [] } = ownMembers(context);
  refuseUncalled(`${factory}(...)`, [given]);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const expected = parent === '' ? 'expected an options object' : `option "${parent}" must be an object`;
    throw new TypeError(`${factory}(): ${expected}, got ${describe(given)}`);
  }
  const prefix = parent === '' ? '' : `${parent}.`;
  const known = [...Object.keys(table), ...alsoKnown];
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    throw new TypeError(`${factory}(): unknown option ${JSON.stringify(prefix + key)}${didYouMean(key, known)}`);
  }
  const members = given as Readonly<Record<string, unknown>>;
  const values = Object.create(null) as Record<string, unknown>;
  for (const [key, option] of Object.entries<Option<unknown>>(table)) {
    const value = Object.hasOwn(members, key) ? members[key] : undefined;
    values[key] = option.read(value, { factory, name: prefix + key });
  }
  const { logger = consoleLogger, schedule } = values as { readonly logger?: Logger; readonly schedule?: Schedule };
  const failed = (error: unknown): void => logger.error({ error: errorText(error) }, 'a timer failed');
  if (schedule) values['schedule'] = guardSchedule(schedule, failed);
  return Object.freeze(values) as ValuesOf<Table>;
}

/**
 * Throws where a framework calls a factory with a request, because the app registered it without calling it.
 *
 * @param call - how it is written: `requireScope('orders:read')`
 */
export function refuseUncalled(call: string, [first]: readonly unknown[]): void {
  if (typeof first !== 'object' || first === null || !('httpVersion' in first && 'headers' in first)) return;
  throw new TypeError(`${/^\w+/.exec(call)?.[0]} is registered as a middleware without being called: write ${call}`);
}

/** Throws the TypeError about one option. */
export function refuseOption({ factory, name }: OptionPlace, expected: string, given: unknown): never {
  throw new TypeError(`${factory}(): option "${name}" must be ${expected}, got ${describe(given)}`);
}

/**
 * An option of any kind.
 *
 * @param accept - returns the value to use, or `undefined` for one that does not fit
 * @param text - how an environment variable writes it; `convert` makes the value of a text. Default: as the value, a string
 */
function anyOption<Value, Fallback extends Value | undefined = undefined>(
  expected: string,
  accept: (given: unknown, at: OptionPlace) => Value | undefined,
  fallback?: Fallback,
  { convert = (text) => text, ...text }: Partial<TextForm> & { readonly convert?: (text: string) => unknown } = {},
): Option<Value | Fallback> {
  const parse = (text: string): unknown => {
    const given = attempt(() => convert(text));
    // No message has the place of a text.
    return attempt(() => accept(given, { factory: '', name: '' })) === undefined ? undefined : given;
  };
  return {
    expected,
    fallback,
    text: { expected, parse, ...text },
    read(given, at) {
      if (given === undefined) return fallback as Fallback;
      const value = accept(given, at);
      return value === undefined ? refuseOption(at, expected, given) : value;
    },
  };
}

/** The same option, which cannot be left out. */
function required<Value>(
  { read, ...optional }: Option<Value>,
  expected = optional.expected,
): Option<Exclude<Value, undefined>> & { readonly isRequired: true } {
  return {
    ...optional,
    expected,
    isRequired: true,
    read(given, at) {
      if (given === undefined) refuseOption(at, expected, given);
      return read(given, at) as Exclude<Value, undefined>;
    },
  };
}

function string<Fallback extends string | undefined = undefined>(fallback?: Fallback): Option<string | Fallback> {
  const accept = (given: unknown) => (typeof given === 'string' && given !== '' ? given : undefined);
  return anyOption('a non-empty string', accept, fallback);
}

/** A string that no message shows. */
function secret(minLength: number): Option<string | undefined> {
  const expected = minLength === 1 ? 'a non-empty string' : `a string of at least ${minLength} characters`;
  const accept = (given: unknown, { factory, name }: OptionPlace): string => {
    if (typeof given === 'string' && given.length >= minLength) return given;
    throw new TypeError(`${factory}(): option "${name}" must be ${expected}`);
  };
  const show = (text: string) => `${text.length} characters (not shown)`;
  return anyOption(expected, accept, undefined, { isSecret: true, show });
}

function boolean<Fallback extends boolean | undefined = undefined>(fallback?: Fallback): Option<boolean | Fallback> {
  const accept = (given: unknown) => (typeof given === 'boolean' ? given : undefined);
  const convert = (text: string) => /^(on|true|1)$/i.test(text) || (/^(off|false|0)$/i.test(text) ? false : undefined);
  return anyOption('true or false', accept, fallback, { expected: 'on or off', convert });
}

/** A number within bounds, both inclusive; `unit` is for the message. */
function number<Fallback extends number | undefined = undefined>(
  bounds: { readonly unit?: string; readonly min: number; readonly max?: number; readonly integer?: boolean },
  fallback?: Fallback,
): Option<number | Fallback> {
  const { unit, min, max = Number.MAX_SAFE_INTEGER, integer = false } = bounds;
  const range = `${unit === undefined ? '' : `of ${unit} `}from ${min} to ${max}`;
  const accept = (given: unknown) => {
    const fits = typeof given === 'number' && given >= min && given <= max && (!integer || Number.isInteger(given));
    return fits ? given : undefined;
  };
  const convert = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);
  const text = { expected: `a whole number ${range}`, convert };
  return anyOption(integer ? text.expected : `a number ${range}`, accept, fallback, text);
}

function oneOf<const Choice extends string, Fallback extends Choice | undefined = undefined>(
  choices: readonly Choice[],
  fallback?: Fallback,
): Option<Choice | Fallback> {
  const expected = `one of ${choices.join(', ')}`;
  const accept = (given: unknown, { factory, name }: OptionPlace) => {
    const choice = choices.find((one) => one === given);
    const near = choice === undefined && typeof given === 'string' ? nearest(given, choices) : undefined;
    if (near === undefined) return choice;
    throw new TypeError(`${factory}(): option "${name}" must be ${expected}, got ${describe(given)}${near}`);
  };
  return anyOption(expected, accept, fallback, { choices });
}

/** A function, whose parameters nothing can check. */
function callable<Value>(fallback?: Value): Option<Value> {
  const accept = (given: unknown) => (typeof given === 'function' ? (given as Value) : undefined);
  return { ...anyOption('a function', accept, fallback as Value & undefined) };
}

/** An object with methods, such as a store. */
function withMethods<Value extends object>(
  methods: readonly (keyof Value & string)[],
  expected: string,
): Option<Value | undefined> {
  return anyOption(expected, (given) => {
    const value = given as Value | null;
    return methods.every((method) => typeof value?.[method] === 'function') ? (value as Value) : undefined;
  });
}

/** Options in an option; `finish` checks and completes them together. */
function nested<Table extends OptionTable, Value = ValuesOf<Table>>(
  table: Table,
  finish: (values: ValuesOf<Table>, at: OptionPlace) => Value = (values) => values as Value,
): Option<Value | undefined> & { readonly table: Table } {
  const accept = (given: unknown, at: OptionPlace) =>
    finish(readOptions(at.factory, given, table, { parent: at.name }), at);
  return { ...anyOption('an object', accept), table };
}

/**
 * The kinds of options: `option.number({ unit: 'milliseconds', min: 1 }, 5_000)`. The last argument is the default. A kind of its own:
 * `option(expected, accept)`.
 */
export const option = Object.assign(anyOption, {
  boolean,
  callable,
  nested,
  number,
  oneOf,
  required,
  secret,
  string,
  withMethods,
});

/** What a factory takes from its environment: tests replace it, and so does an app with its own logger or a proxy. */
export interface Dependencies {
  /**
   * Where refusals (each as `info`), warnings and errors go; pino fits, `false` is silent. Default: the console, where
   * refusals are counted.
   */
  readonly logger?: Logger | false | undefined;
  /** Returns the time in ms since the epoch. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /**
   * Calls `task` once after `delayMs`, unless it is cancelled before. Default: `setTimeout`, which does not keep the
   * process alive.
   */
  readonly schedule?: ((task: () => void, delayMs: number) => { cancel(): void }) | undefined;
  /** Fetches metadata, key sets and generations; for tests, a proxy or mutual TLS. Default: Node's HTTP client. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

const WITH_LEVELS = withMethods<Logger>(
  ['info', 'warn', 'error'],
  'an object with the methods info, warn and error, or false',
);

const LOGGER: Option<Logger> = {
  ...WITH_LEVELS,
  read: (given, at) => (given === false ? silentLogger : guardLogger(WITH_LEVELS.read(given, at) ?? consoleLogger)),
};

/** The rows of {@link Dependencies}. */
export const DEPENDENCIES = {
  logger: LOGGER,
  // Not the name of the type: declarations of other rooms cannot import it.
  clock: callable<() => number>(systemClock),
  schedule: callable<Schedule>(systemSchedule),
  fetch: callable<Dependencies['fetch']>(),
} satisfies TableOf<Dependencies>;

/** The rows of the dependencies that a factory takes, to be spread into its table. */
export function dependencies<Name extends keyof Dependencies>(
  ...names: readonly Name[]
): Pick<typeof DEPENDENCIES, Name> {
  return Object.fromEntries(names.map((name) => [name, DEPENDENCIES[name]])) as Pick<typeof DEPENDENCIES, Name>;
}
