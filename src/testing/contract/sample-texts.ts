import type RandExp from 'randexp';

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T12:00:00Z',
  time: '12:00:00Z',
  duration: 'PT1H',
  email: 'sample@example.com',
  hostname: 'sample.example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/sample',
  url: 'https://example.com/sample',
  'uri-reference': '/sample',
  'uri-template': '/sample/{id}',
  'json-pointer': '/sample',
  'relative-json-pointer': '0',
  regex: '^sample$',
  byte: 'c2FtcGxl',
  uuid: '00000000-0000-4000-8000-000000000001',
};

/** Tried for a pattern before one is made from it: values that mean something, and runs of one character. */
const TEXTS = [
  ...['sample', 'sample-1', 'sample_1', 'a1', 'A1', '12:00', '#000000', '+441632960000', '1.0.0'],
  ...Object.values(FORMATS),
  ...['a', 'A', '1', '0'].flatMap((letter) => Array.from({ length: 40 }, (_, index) => letter.repeat(index + 1))),
];

const ATTEMPTS = 50;

/** Forms of a format for short and for long texts. */
const OTHER_FORMS: Readonly<Record<string, readonly string[]>> = {
  email: ['a@b.co'],
  hostname: ['a.co'],
  uri: ['http://a.co', 'https://example.com/s'],
  url: ['http://a.co'],
  'date-time': ['2026-01-01T12:00:00.000000Z', '2026-01-02T12:00:00+00:00'],
  byte: ['YQ==', ''],
};

/**
 * A text that a schema allows, the `shift`th of those that are found.
 *
 * @throws TypeError when none matches its patterns
 */
export function sampleText(schema: Readonly<Record<string, unknown>>, shift: number): string {
  const { format, pattern } = schema;
  const { minLength: shortest = 0, maxLength: longest = Infinity } = schema as Readonly<Record<string, number>>;
  const isKnown = typeof format === 'string' && FORMATS[format] !== undefined;
  const forms = isKnown ? [FORMATS[format] as string, ...(OTHER_FORMS[format] ?? [])] : [];
  const isFitting = (text: string): boolean => text.length >= shortest && text.length <= longest;
  const padded = 'sample'.padEnd(shortest, 'a').slice(0, longest);
  const others = isKnown
    ? [
        ...forms.map((form) =>
          /^https?:/.test(form) ? `${form.replace(/\.co$/, '.co/')}`.padEnd(shortest, 'a') : form,
        ),
        ...forms.map((form) => 'a'.repeat(Math.max(0, shortest - form.length)) + form),
        ...forms.map((form) =>
          form.replace(/\d(?=\D*$)|[a-z](?=[^a-z]*$)/, (last) => String.fromCharCode(last.charCodeAt(0) + (shift % 8))),
        ),
      ]
    : [0, 1, 2].map((by) => padded.slice(0, -1) + 'bcdefghijklmnopqrstuvwxyz'[(shift + by) % 25]);
  const patterns = [(pattern as string | readonly string[] | undefined) ?? []].flat();
  const expressions = patterns.map(readPattern);
  // Like every validator of JSON, not one in another language's syntax.
  const matches = (text: string): boolean => expressions.every((one) => !one || one.test(text)) && isFitting(text);
  const known = expressions.length > 0 ? TEXTS : [];
  const found = [
    ...new Set([...(isKnown ? forms : [padded]), ...others, ...(isKnown ? [] : [padded]), ...known]),
  ].filter(matches);
  const made =
    found[shift] ??
    expressions.map((one) => one && textOf(one, matches, shortest, longest, shift)).find((one) => one !== undefined) ??
    found[shift % Math.max(found.length, 1)];
  if (made !== undefined) return made;
  // A format that no form fits: the validator decides.
  if (expressions.length === 0) return padded;
  throw new TypeError(`no known string matches the pattern ${patterns.join(' and ')}`);
}

/** A pattern, with the flag `u` if it allows that (JSON Schema 2020-12 section 6.4 of its core); `undefined`: not ECMA-262. */
export function readPattern(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags);
    } catch {
      continue;
    }
  }
  return undefined;
}

/** A text made from a pattern, the same on every call. */
function textOf(
  expression: RegExp,
  matches: (text: string) => boolean,
  shortest: number,
  longest: number,
  skip: number,
): string | undefined {
  // Loaded with the first pattern that needs it.
  // eslint-disable-next-line @typescript-eslint/no-require-imports
  const Generator = require('randexp') as typeof RandExp;
  try {
    const generator = new Generator(expression.source);
    const texts = new Set<string>();
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      generator.max = attempt % 2 === 0 ? Math.min(longest, Math.max(shortest, attempt)) : shortest + attempt;
      let seed = attempt + 1;
      generator.randInt = (from, to) => {
        seed = (seed * 48_271) % 2_147_483_647;
        return from + (attempt === 0 ? 0 : seed % (1 + to - from));
      };
      const text = generator.gen();
      // A pattern without an end allows more.
      const found = [text, text.padEnd(shortest, 'a'), text.padEnd(shortest, '0')].find(matches);
      if (found !== undefined) texts.add(found);
      if (texts.size > skip) return found;
    }
    return [...texts][0];
  } catch {
    // What the generator cannot read.
  }
  return undefined;
}
