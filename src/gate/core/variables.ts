import { parseUrl } from './urls';

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
}

/** One environment variable. */
export interface Variable<Value = unknown> extends TextForm<Value> {
  readonly name: `TILLGATE_${string}`;
  /** For the docs, if it is not that of an option. */
  readonly meaning?: string;
  /** The default: text that is parsed like a given one, or a description (the value is then `undefined`). */
  readonly fallback: { readonly text: string } | { readonly words: string };
  /** A valid text, shown with a problem. */
  readonly example: string;
}

/** Text that matches `pattern`. */
export function matching(pattern: RegExp, expected: string): TextForm<string> {
  return { expected, parse: (text) => (pattern.test(text) ? text : undefined) };
}

/** A form, or `off` for `false`. */
export function orOff<Value>(form: TextForm<Value>): TextForm<Value | false> {
  return {
    ...form,
    expected: `${form.expected}, or off`,
    parse: (text) => (text === 'off' ? false : form.parse(text)),
  };
}

/** An absolute URL, kept byte for byte: issuers and audiences are compared without normalisation (RFC 8414 section 3.3). */
export function url({
  schemes = ['http', 'https'],
  query = false,
  credentials = false,
}: {
  readonly schemes?: readonly string[];
  readonly query?: boolean;
  readonly credentials?: boolean;
} = {}): TextForm<string> {
  const without = [...(credentials ? [] : ['credentials']), ...(query ? [] : ['query']), 'fragment'].join(' or ');
  return {
    expected: `an absolute ${schemes.map((scheme) => `${scheme}://`).join(', ')} URL without ${without}`,
    isSecret: credentials,
    parse(text) {
      // `new URL()` corrects blanks, backslashes and missing slashes: such URLs are refused.
      const scheme = /^([a-z]+):\/\/[^\s\\]+$/.exec(text)?.[1];
      if (scheme === undefined || !schemes.includes(scheme) || !parseUrl(text)) return undefined;
      if (text.includes('#') || (text.includes('?') && !query)) return undefined;
      return text.includes('@') && !credentials ? undefined : text;
    },
    show: withoutSecrets,
  };
}

/** A URL without the parts that can hold secrets: credentials, query and fragment. */
function withoutSecrets(text: string): string {
  const shown = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@').replace(/[?#].*$/su, '?...');
  return JSON.stringify(shown);
}
