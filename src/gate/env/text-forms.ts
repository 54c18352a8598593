import { isIP } from 'node:net';
import { readClaimPath, type ClaimPath } from '../core/claim-path';
import { attempt } from '../core/objects';
import type { TextForm } from '../core/options';
import { parseUrl } from '../core/urls';
import { readStrings } from '../verifier/read-options';
import type { RateLimit } from './settings';

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

/** Parts of a URL, and the characters that introduce them. */
const URL_PARTS = { credentials: '@', query: '?', fragment: '#' };

/** An absolute URL, kept byte for byte: issuers and audiences are compared without normalisation (RFC 8414 section 3.3). */
export function url(allowed: readonly string[] = [], schemes = ['http', 'https']): TextForm<string> {
  const refused = Object.entries(URL_PARTS).filter(([part]) => !allowed.includes(part));
  const without = refused.map(([part]) => part).join(' or ');
  return {
    expected: `an absolute ${schemes.map((scheme) => `${scheme}://`).join(', ')} URL without ${without}`,
    isSecret: allowed.includes('credentials'),
    parse(text) {
      // `new URL()` corrects blanks, backslashes and missing slashes: such URLs are refused.
      const scheme = /^([a-z]+):\/\/[^\s\\]+$/.exec(text)?.[1];
      if (scheme === undefined || !schemes.includes(scheme) || !parseUrl(text)) return undefined;
      return refused.some(([, mark]) => text.includes(mark)) ? undefined : text;
    },
    show: showUrl,
  };
}

/** Credentials, query and fragment can be secrets, also in a text that is not a URL. */
export function showUrl(text: string): string {
  return JSON.stringify(text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@').replace(/[?#].*$/su, '?...'));
}

/** A text that looks like a list would be one audience, which no token has. */
export const AUDIENCES: TextForm<string | readonly string[]> = {
  expected: 'an audience without white space',
  parse(text) {
    if (!text.startsWith('[')) return /^[^\s,;]+$/.test(text) ? text : undefined;
    const audiences = readStrings(attempt(() => JSON.parse(text) as unknown));
    return audiences && Object.freeze(audiences);
  },
  correct(text) {
    const audiences = text.split(/[\s,;[\]"']+/).filter(Boolean);
    return audiences.length > 1 && /[,;[]/.test(text)
      ? `a list as JSON: TILLGATE_AUDIENCE='${JSON.stringify(audiences)}'`
      : undefined;
  },
};

/** Names between dots, or as JSON: `["ext","a.b"]`. */
export const CLAIM = orOff<string | ClaimPath>({
  expected: 'the name of a claim',
  parse(text) {
    if (text.startsWith('[')) return readClaimPath(attempt(() => JSON.parse(text) as unknown));
    return /^[\x21-\x2b\x2d-\x7e]{1,128}$/.test(text) && readClaimPath(text) ? text : undefined;
  },
});

/** `none`: the issuer has no JWTs. */
export const EMPTY_KEYS: TextForm<readonly object[]> = {
  expected: 'none',
  choices: ['none'],
  parse: (text) => (text === 'none' ? Object.freeze([]) : undefined),
};

export const PORT: TextForm<number> = {
  expected: 'a port number from 0 to 65535',
  parse: (text) => (/^\d{1,15}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
};

const WINDOWS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** `6000/m`. */
export const RATE_LIMIT = orOff<RateLimit>({
  expected: 'a number of requests per s, m or h',
  parse(text) {
    const [, limit, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? [];
    const windowMs = WINDOWS[unit ?? ''];
    return windowMs === undefined ? undefined : Object.freeze({ limit: Number(limit), windowMs });
  },
});

/** Origins (RFC 6454 section 6.2) as browsers send them. */
export const ORIGINS: TextForm<readonly string[]> = {
  expected: 'origins such as https://shop.example.com, without a path, between commas or blanks',
  parse(text) {
    const list = [...new Set(partsOf(text))];
    const isGood = list.length > 0 && list.every((one) => parseUrl(one)?.origin === one);
    return isGood ? Object.freeze(list) : undefined;
  },
};

/** Express's `trust proxy`: how many proxies, or which. */
export const PROXIES = orOff<number | readonly string[]>({
  expected: 'a number of proxies from 1 to 100, or IP addresses and subnets between commas or blanks',
  parse(text) {
    if (/^(100|[1-9]\d?)$/.test(text)) return Number(text);
    const list = partsOf(text);
    return list.length > 0 && list.every(isSubnet) ? Object.freeze(list) : undefined;
  },
});

function isSubnet(text: string): boolean {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && (prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128));
}

function partsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

export const LOG_LEVEL: TextForm<string> = {
  expected: `one of ${LOG_LEVELS.join(', ')}`,
  choices: LOG_LEVELS,
  parse: (text) => LOG_LEVELS.find((level) => level === text),
};
