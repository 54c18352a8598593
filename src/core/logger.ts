/** Where a gate reports to. pino, bunyan and the like fit as they are. Fields never hold a token, a secret or a header value. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The default: warnings and errors to the console as one line each. Refusals are counted there: `refusalLog()`. */
export const consoleLogger: Logger = {
  info() {},
  warn(fields, message) {
    console.warn(`tillgate: ${message} ${escapeNonAscii(JSON.stringify(fields))}`);
  },
  error(fields, message) {
    console.error(`tillgate: ${message} ${escapeNonAscii(JSON.stringify(fields))}`);
  },
};

/**
 * C0 and C1 controls, line separators, and the format characters that reorder or hide text (Unicode Standard Annex 9,
 * zero-width characters, the byte order mark), and lone surrogates.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Text of somebody else as a terminal may show it: what could move the cursor or reorder the line is escaped. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, escapeUnits);
}

/**
 * JSON in printable ASCII. JSON allows characters that terminals take for commands and log viewers for line breaks
 * (U+009B, U+2028, U+202E).
 */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\x7f-\uffff]/g, escapeUnits);
}

function escapeUnits(text: string): string {
  return Array.from({ length: text.length }, (_, index) => {
    return `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`;
  }).join('');
}

const MAX_SEGMENT = 64;
const MAX_PATH = 512;

/**
 * The path of a request target as a log may show it: without scheme, user and host, without query and fragment, and
 * without anything that can be a token. Some callers put one there by mistake, and no token is ever logged.
 *
 * @example
 * ```ts
 * import { loggablePath } from 'tillgate/app';
 *
 * console.log(loggablePath('/v1/orders/ord_0001?access_token=x')); // /v1/orders/ord_0001
 * ```
 */
export function loggablePath(target: string): string {
  const [path = ''] = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  // No id of ours is so long, every token is: percent-encoded, opaque, or only a part of one.
  const short = path.replace(/[^/]+/g, (segment) => (segment.length > MAX_SEGMENT ? `[${segment.length}]` : segment));
  return short.replace(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '[token]').slice(0, MAX_PATH);
}

/**
 * Name and code of an error or of its cause, such as `TypeError (ECONNREFUSED)`, without its message, which can contain
 * anything.
 */
export function errorLabel(error: unknown): string {
  // Not `instanceof Error`: inside Jest, Node's own errors come from another realm.
  const { name, code, cause } = Object(error) as Readonly<Record<string, unknown>>;
  const label = wordOf(name) ?? `a thrown ${typeof error}`;
  const found = wordOf(code) ?? wordOf((Object(cause) as { readonly code?: unknown }).code);
  return found === undefined ? label : `${label} (${found})`;
}

function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^\w{1,60}$/.test(value) ? value : undefined;
}
