import { OAuthError } from './oauth-error';

/** Parameters of a request, each once; those without a value are left out (RFC 6749 section 3.2). */
export type Form = ReadonlyMap<string, string>;

/** The one parameter that may come more than once (RFC 8707 section 2). It is not supported, and ignored. */
const REPEATABLE = 'resource';

/**
 * Reads a form-encoded body (RFC 6749 appendix B).
 *
 * Not URLSearchParams: it takes broken encodings for text, and so could make another secret or scope of what was sent.
 *
 * @throws OAuthError `invalid_request` for a broken encoding or a repeated parameter.
 */
export function parseForm(body: Uint8Array): Form {
  const form = new Map<string, string>();
  for (const pair of decodeUtf8(body).split('&')) {
    const end = pair.indexOf('=');
    if (end === -1) addParameter(form, decode(pair), '');
    else addParameter(form, decode(pair.slice(0, end)), decode(pair.slice(end + 1)));
  }
  for (const [name, value] of form) if (name === '' || value === '') form.delete(name);
  return form;
}

/** Decodes one form-encoded text; `undefined` when it is broken or no UTF-8. */
export function formDecode(text: string): string | undefined {
  // As most names and values come.
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

function addParameter(form: Map<string, string>, name: string, value: string): void {
  if (name !== REPEATABLE && name !== '' && form.has(name)) {
    throw new OAuthError('invalid_request', `${nameForText(name)} must not be included more than once.`);
  }
  form.set(name, value);
}

function decode(text: string): string {
  const decoded = formDecode(text);
  if (decoded !== undefined) return decoded;
  throw new OAuthError(
    'invalid_request',
    'The request body is not properly form-encoded: a percent sign or byte is wrong.',
  );
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'The request body is not UTF-8.');
  }
}

/** A name as it may stand in an error description: it comes from the caller. */
function nameForText(name: string): string {
  return /^[a-z_]{1,40}$/.test(name) ? name : 'A parameter';
}
