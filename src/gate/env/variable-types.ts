import { isIP } from 'node:net';
import { attempt } from '../core/objects';
import { parseUrl } from '../core/urls';

/** A number of requests per window. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

/** Reads the text of a variable. */
export interface VariableType<Value> {
  /** As the object of a sentence: `a port from 0 to 65535`. */
  readonly expected: string;
  /** A valid text, shown with a problem. */
  readonly example: string;
  /** The value; `undefined` if the text is not of this type. */
  parse(text: string): Value | undefined;
  /** The accepted texts, if there is a fixed list. */
  readonly choices?: readonly string[];
  /** Whether it can be a secret: then `<name>_FILE` may name a file that holds the text. */
  readonly isSecret?: boolean;
  /** Makes a refused text safe to show; default: as it is. */
  show?(text: string): string;
}

const WINDOWS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const SWITCHES = new Map([
  ...['on', 'true', '1'].map((text) => [text, true] as const),
  ...['off', 'false', '0'].map((text) => [text, false] as const),
]);

/** Text that matches `pattern`. */
export function plainText(pattern: RegExp, expected: string, example: string): VariableType<string> {
  return { expected, example, parse: (given) => (pattern.test(given) ? given : undefined) };
}

/** Text that is never shown in a problem. */
export function secretText(pattern: RegExp, expected: string, example: string): VariableType<string> {
  return {
    ...plainText(pattern, expected, example),
    isSecret: true,
    show: (given) => `${given.length} characters (not shown)`,
  };
}

/** A whole number within inclusive bounds; digits only. `unit` is for the message. */
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

/** A TCP port; 0 takes any free one. */
export function port(example: string): VariableType<number> {
  return wholeNumber('port number', 0, 65_535, example);
}

/** One of several words. */
export function oneWord<const Choice extends string>(
  choices: readonly Choice[],
  example: Choice,
): VariableType<Choice> {
  return {
    expected: `one of ${choices.join(', ')}`,
    example,
    choices,
    parse: (given) => choices.find((choice) => choice === given),
  };
}

/** `on` or `off`. */
export function onOff(example: 'on' | 'off'): VariableType<boolean> {
  return { expected: 'on or off', example, parse: (given) => SWITCHES.get(given.toLowerCase()) };
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

/** An absolute URL, kept byte for byte: issuers and audiences are compared without normalisation (RFC 8414 section 3.3). */
export function url({
  schemes = ['http', 'https'],
  query = false,
  credentials = false,
  example,
}: {
  readonly schemes?: readonly string[];
  readonly query?: boolean;
  readonly credentials?: boolean;
  readonly example: string;
}): VariableType<string> {
  const without = [...(credentials ? [] : ['credentials']), ...(query ? [] : ['query']), 'fragment'].join(' or ');
  return {
    expected: `an absolute ${schemes.map((scheme) => `${scheme}://`).join(', ')} URL without ${without}`,
    example,
    isSecret: credentials,
    parse(given) {
      // `new URL()` corrects blanks, backslashes and missing slashes: such URLs are refused.
      const scheme = /^([a-z]+):\/\/[^\s\\]+$/.exec(given)?.[1];
      if (scheme === undefined || !schemes.includes(scheme) || !parseUrl(given)) return undefined;
      if (given.includes('#') || (given.includes('?') && !query)) return undefined;
      return given.includes('@') && !credentials ? undefined : given;
    },
    show: withoutSecrets,
  };
}

/** Origins (RFC 6454 section 6.2) as browsers send them, each once. */
export function origins(example: string): VariableType<readonly string[]> {
  return {
    expected: 'origins such as https://shop.example.com, without a path, between commas or blanks',
    example,
    parse(given) {
      const list = [...new Set(given.split(/[\s,]+/).filter(Boolean))];
      const isGood = list.length > 0 && list.every((one) => parseUrl(one)?.origin === one);
      return isGood ? Object.freeze(list) : undefined;
    },
  };
}

/** Express's `trust proxy`: how many proxies, or which. */
export function trustedProxies(example: string): VariableType<number | readonly string[]> {
  return {
    expected: 'a number of proxies from 1 to 100, or IP addresses and subnets between commas or blanks',
    example,
    parse(given) {
      if (/^(100|[1-9]\d?)$/.test(given)) return Number(given);
      const list = given.split(/[\s,]+/).filter(Boolean);
      return list.length > 0 && list.every(isSubnet) ? Object.freeze(list) : undefined;
    },
  };
}

function isSubnet(given: string): boolean {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(given) ?? [];
  const family = isIP(address);
  return family !== 0 && (prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128));
}

/** What `read` returns, which throws for text of another type. */
export function checked<Value extends object>(
  expected: string,
  example: string,
  read: (text: string) => Value,
): VariableType<Value> {
  return { expected, example, parse: (given) => attempt(() => Object.freeze(read(given))) };
}

/** A type, or `off` for `false`. */
export function orOff<Value>(type: VariableType<Value>): VariableType<Value | false> {
  return {
    ...type,
    expected: `${type.expected}, or off`,
    parse: (given) => (given === 'off' ? false : type.parse(given)),
  };
}

/** A URL without the parts that can hold secrets: credentials, query and fragment. */
function withoutSecrets(given: string): string {
  const shown = given.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@').replace(/[?#].*$/su, '?...');
  return JSON.stringify(shown);
}
