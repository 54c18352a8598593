/** A number of requests per window of time. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

/** How the text of a variable is read. */
export interface VariableType<Value> {
  /** What is expected, as the object of a sentence: `a port from 0 to 65535`. */
  readonly expected: string;
  /** A text that would do, for the "how to fix it" of a problem. */
  readonly example: string;
  /** The value, or `undefined` where the text is not of this type. */
  parse(text: string): Value | undefined;
  /** How a text that was refused may be shown; default: as it is. */
  show?(text: string): string;
}

/** What may stand in an address beside scheme, host and path. */
interface AddressParts {
  readonly schemes?: readonly string[];
  readonly query?: boolean;
  readonly credentials?: boolean;
  readonly example: string;
}

const WINDOWS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const SWITCHES: Readonly<Record<string, boolean>> = {
  on: true,
  true: true,
  1: true,
  off: false,
  false: false,
  0: false,
};

/** Text that matches `pattern`. */
export function text(pattern: RegExp, expected: string, example: string): VariableType<string> {
  return { expected, example, parse: (given) => (pattern.test(given) ? given : undefined) };
}

/** Text that is never shown in a problem. */
export function secret(pattern: RegExp, expected: string, example: string): VariableType<string> {
  return { ...text(pattern, expected, example), show: (given) => `${given.length} characters (not shown)` };
}

/** A whole number within the bounds, both inclusive; digits only. `unit` goes into the message. */
export function wholeNumber(unit: string, min: number, max: number, example: string): VariableType<number> {
  return {
    expected: `a ${unit} from ${min} to ${max}`,
    example,
    parse(given) {
      const value = /^\d{1,15}$/.test(given) ? Number(given) : NaN;
      return value >= min && value <= max ? value : undefined;
    },
  };
}

/** A TCP port; 0 means any free one. */
export function port(example: string): VariableType<number> {
  return wholeNumber('port number', 0, 65_535, example);
}

/** One of a closed set of words. */
export function oneOf<const Choice extends string>(choices: readonly Choice[], example: Choice): VariableType<Choice> {
  return {
    expected: `one of ${choices.join(', ')}`,
    example,
    parse: (given) => choices.find((choice) => choice === given),
  };
}

/** `on` or `off`. */
export function onOff(example: 'on' | 'off'): VariableType<boolean> {
  return { expected: 'on or off', example, parse: (given) => SWITCHES[given.toLowerCase()] };
}

/** `6000/m`: a number of requests per second, minute or hour; `off` is `false`. */
export function rateLimit(example: string): VariableType<RateLimit | false> {
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

/** An absolute address, kept byte for byte: issuers and audiences are compared as they are written (RFC 8414 section 3.3). */
export function address({
  schemes = ['http', 'https'],
  query = false,
  credentials = false,
  example,
}: AddressParts): VariableType<string> {
  const without = [...(credentials ? [] : ['credentials']), ...(query ? [] : ['query']), 'fragment'].join(' or ');
  return {
    expected: `an absolute ${schemes.map((scheme) => `${scheme}://`).join(', ')} address without ${without}`,
    example,
    parse: (given) => (isAddress(given, { schemes, query, credentials }) ? given : undefined),
    show: withoutSecrets,
  };
}

/** A type, or the word `off`, read as `false`. */
export function orOff<Value>(type: VariableType<Value>): VariableType<Value | false> {
  return {
    ...type,
    expected: `${type.expected}, or off`,
    parse: (given) => (given === 'off' ? false : type.parse(given)),
  };
}

function isAddress(given: string, allowed: Required<Omit<AddressParts, 'example'>>): boolean {
  // `new URL()` trims blanks, mends backslashes and adds missing slashes: whatever it would have to mend is refused.
  const scheme = /^([a-z]+):\/\/[^\s\\]+$/.exec(given)?.[1];
  if (scheme === undefined || !allowed.schemes.includes(scheme) || !URL.canParse(given)) return false;
  if (given.includes('#') || (given.includes('?') && !allowed.query)) return false;
  return allowed.credentials || !given.includes('@');
}

/** An address as a problem may show it: credentials and query are where secrets live. */
function withoutSecrets(given: string): string {
  const shown = given.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@').replace(/[?#].*$/su, '?...');
  return JSON.stringify(shown);
}
