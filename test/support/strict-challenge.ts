/** A parsed challenge: its scheme and its parameters, in order. */
export interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = String.raw`"((?:[\t \x21\x23-\x5b\x5d-\x7e]|\\[\t \x21-\x7e])*)"`;
const PARAMETER = new RegExp(`(${TOKEN})=${QUOTED}`, 'y');

/** The syntax of each parameter: RFC 6750 section 3, RFC 9728 section 5.1. */
const GRAMMARS: Readonly<Record<string, RegExp>> = {
  realm: /^.*$/,
  error: /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/,
  error_description: /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/,
  scope: /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/,
  resource_metadata: /^https?:\/\/[\x21-\x7e]+$/,
};

/**
 * Reads exactly one challenge (RFC 9110 section 11.6.1), written independently of the serialiser: quoted strings only,
 * no parameter twice, none that is unknown, each with the syntax of its RFC, nothing left over.
 *
 * @throws Error that says what is wrong
 */
export function parseChallenge(text: string): Challenge {
  const challenge = parseQuotedParameters(text);
  for (const [name, value] of challenge.parameters) {
    if (!GRAMMARS[name]?.test(value)) throw new Error(`${name} is unknown or malformed: ${text}`);
  }
  return challenge;
}

/** The same for parameters of any name and value. */
export function parseQuotedParameters(text: string): Challenge {
  const scheme = new RegExp(`^(${TOKEN}) `).exec(text)?.[1];
  if (scheme === undefined) throw new Error(`no scheme: ${text}`);
  const parameters = new Map<string, string>();
  let position = scheme.length + 1;
  for (;;) {
    PARAMETER.lastIndex = position;
    const [whole = '', name = '', quoted = ''] = PARAMETER.exec(text) ?? [];
    if (whole === '') throw new Error(`no parameter at ${position}: ${text}`);
    const value = quoted.replace(/\\(.)/gs, '$1');
    if (parameters.has(name)) throw new Error(`duplicate ${name}: ${text}`);
    parameters.set(name, value);
    position += whole.length;
    if (position === text.length) return { scheme, parameters };
    if (!text.startsWith(', ', position)) throw new Error(`no comma at ${position}: ${text}`);
    position += 2;
  }
}
